"""Measure what vLLM's automatic prefix caching saves."""

from prefixkit.metrics import HitRate, expected_hits, hit_rate
from prefixkit.params import load_params

__version__ = "0.1.0"
__all__ = ["HitRate", "expected_hits", "hit_rate", "load_params"]
