"""Metrics pages: hit rates, cache settings, and three rates that must agree."""

from prefixkit.metrics.cache_config import CacheConfig, cache_config
from prefixkit.metrics.expected import expected_hits
from prefixkit.metrics.fetch import fetch
from prefixkit.metrics.hit_rate import hit_rate
from prefixkit.metrics.latency import LatencyShift, latency_shift
from prefixkit.metrics.page import MetricsError, UnreachableError
from prefixkit.metrics.reconcile import Reconciliation, reconcile
from prefixkit.metrics.result import HitRate
from prefixkit.metrics.totals import KvUsage, kv_usage, totals

__all__ = [
    "CacheConfig",
    "HitRate",
    "KvUsage",
    "LatencyShift",
    "MetricsError",
    "Reconciliation",
    "UnreachableError",
    "cache_config",
    "expected_hits",
    "fetch",
    "hit_rate",
    "kv_usage",
    "latency_shift",
    "reconcile",
    "totals",
]
