"""Measure what vLLM's automatic prefix caching saves."""

from typing import TYPE_CHECKING, Any

from prefixkit.metrics import HitRate, expected_hits, hit_rate
from prefixkit.params import load_params

if TYPE_CHECKING:
    from prefixkit.stats import Fit, fit

__version__ = "0.1.0"
__all__ = ["Fit", "HitRate", "expected_hits", "fit", "hit_rate", "load_params"]


def __getattr__(name: str) -> Any:
    """Import `fit` on first use: statsmodels takes a second, and most commands fit nothing."""
    if name in ("Fit", "fit"):
        from prefixkit import stats

        return getattr(stats, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
