"""Why a server's prefix caching gives what it gives: checks, a live test, and causes ranked by evidence."""

from prefixkit.doctor.check import Check, Diagnosis
from prefixkit.doctor.run import diagnose
from prefixkit.doctor.verdict import Evidence, explain

__all__ = ["Check", "Diagnosis", "Evidence", "diagnose", "explain"]
