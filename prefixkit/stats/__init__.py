"""Statistics: pure functions from record dicts to frozen results, every number with its interval or its reason."""

from prefixkit.stats.estimate import Estimate, Verdict
from prefixkit.stats.line import Line, fit_line
from prefixkit.stats.lines import Fit, fit

__all__ = ["Estimate", "Fit", "Line", "Verdict", "fit", "fit_line"]
