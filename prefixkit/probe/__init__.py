"""Time one request, or many, with the clock in the transport."""

from prefixkit.probe.client import Client
from prefixkit.probe.keys import clean_key
from prefixkit.probe.load import TimedProbe, closed_loop, open_loop, poisson
from prefixkit.probe.request import TokenIds
from prefixkit.probe.result import Probe
from prefixkit.probe.urls import Endpoints, endpoints

__all__ = [
    "Client",
    "Endpoints",
    "Probe",
    "TimedProbe",
    "TokenIds",
    "clean_key",
    "closed_loop",
    "endpoints",
    "open_loop",
    "poisson",
]
