"""Measure what vLLM's automatic prefix caching saves."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prefixkit.metrics import HitRate, expected_hits, hit_rate
from prefixkit.params import load_params

if TYPE_CHECKING:
    from prefixkit.doctor import diagnose
    from prefixkit.probe import Client, Probe
    from prefixkit.server import serve
    from prefixkit.stats import Fit, fit

__version__ = "0.1.0"
__all__ = ["Client", "Fit", "HitRate", "Probe", "diagnose", "expected_hits", "fit", "hit_rate", "load_params", "serve"]

_LATE = {
    "Client": "prefixkit.probe",
    "Fit": "prefixkit.stats",
    "Probe": "prefixkit.probe",
    "diagnose": "prefixkit.doctor",
    "fit": "prefixkit.stats",
    "serve": "prefixkit.server",
}


def __getattr__(name: str) -> Any:
    """Import statsmodels and the SDK on first use: each takes a second, and most commands need neither."""
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
