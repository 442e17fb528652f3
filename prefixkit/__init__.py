"""Measure what vLLM's automatic prefix caching saves."""

from prefixkit.params import load_params

__version__ = "0.1.0"
__all__ = ["load_params"]
