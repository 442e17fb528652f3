"""Quantiles of TTFT under load, with intervals that need no shape, or "not estimable"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from prefixkit.stats.estimate import LEVEL, Estimate, missing

QUANTILES = (0.5, 0.9, 0.99)
RESAMPLES = 2000


def quantile(values: Sequence[float], q: float, unit: str = "ms") -> Estimate:
    """Return a quantile with its order-statistics interval (binomial, exact or wider than 95 %).

    Not estimable with fewer than 1/min(q, 1 - q) values: no value of the sample need lie beyond it.
    """
    ordered = np.sort(np.asarray([v for v in values if v is not None and np.isfinite(v)], dtype=float))
    n = len(ordered)
    name = f"p{100 * q:g}"
    if n * min(q, 1 - q) < 1:
        need = int(np.ceil(1 / min(q, 1 - q)))
        return missing("not-estimable", f"{name} needs at least {need} values, there are {n}.", n=n, unit=unit)
    value = float(np.quantile(ordered, q))
    interval = _ranks(n, q)
    if interval is None:
        note = f"{n} values are too few for an interval of {name}."
        return missing("no-interval", note, n=n, unit=unit, value=value)
    low, high = (float(ordered[i]) for i in interval)
    if low == high:
        return missing("constant", f"The values around {name} are equal.", n=n, unit=unit, value=value)
    return Estimate(value, low, high, n, unit, "order statistics")


def quantiles(values: Sequence[float], unit: str = "ms") -> dict[float, Estimate]:
    """Return p50, p90 and p99."""
    return {q: quantile(values, q, unit) for q in QUANTILES}


def quantile_difference(a: Sequence[float], b: Sequence[float], q: float, *, seed: int = 0) -> Estimate:
    """Return the quantile of `a` minus that of `b`, in ms, with a percentile bootstrap interval (seeded)."""
    first, second = quantile(a, q), quantile(b, q)
    n = first.n + second.n
    for side in (first, second):
        if side.value is None or side.low is None:
            return missing(side.status, side.note, n=n, unit="ms")
    assert first.value is not None and second.value is not None
    rng = np.random.default_rng(seed)
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    draws = [_resampled(side, q, rng) for side in (x, y)]
    low, high = np.quantile(draws[0] - draws[1], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(first.value - second.value, float(low), float(high), n, "ms", f"bootstrap, {RESAMPLES} resamples")


def _ranks(n: int, q: float) -> tuple[int, int] | None:
    """Return indices of the order statistics that hold the quantile with at least 95 %, or None."""
    tail = (1 - LEVEL) / 2
    low, high = int(stats.binom.ppf(tail, n, q)) - 1, int(stats.binom.ppf(1 - tail, n, q))
    return None if low < 0 or high >= n else (low, high)


def _resampled(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], q: float, rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([np.quantile(rng.choice(values, len(values)), q) for _ in range(RESAMPLES)])
