"""Small estimates for tables, on plain lists: means, paired differences and ratios, quantiles, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.ratio import mean_estimate, paired_reduction, welch_difference


def mean(values: Sequence[float], unit: str = "ms") -> Estimate:
    """Return the mean with a t interval, where at least two values differ."""
    return mean_estimate(np.array(values, dtype=float), unit)


def difference(pairs: Sequence[tuple[float, float]], unit: str = "ms") -> Estimate:
    """Return the mean of first minus second."""
    return mean([a - b for a, b in pairs], unit)


def ratio_of_means(pairs: Sequence[tuple[float, float]]) -> Estimate:
    """Return 1 - mean(second) / mean(first) of pairs."""
    if not pairs:
        return missing("empty", "No pairs.", unit="fraction")
    first, second = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    return paired_reduction(second, first)


def unpaired(first: Sequence[float], second: Sequence[float], unit: str = "ms") -> Estimate:
    """Return mean(first) - mean(second) with Welch's interval."""
    return welch_difference(np.array(first, dtype=float), np.array(second, dtype=float), unit)


def quantile(values: Sequence[float], q: float, unit: str = "ms") -> Estimate:
    """Return a quantile with its order-statistics interval; not estimable where fewer than 1/(1-q) values stand."""
    n = len(values)
    if n == 0 or n * min(q, 1 - q) < 1:
        return missing("not-estimable", f"{n} values cannot support the {q:.0%} quantile.", n=n, unit=unit)
    ordered = np.sort(np.asarray(values, dtype=float))
    value = float(np.quantile(ordered, q))
    low, high = (int(stats.binom.ppf(p, n, q)) for p in (0.025, 0.975))
    if low < 1 or high >= n or stats.binom.cdf(high, n, q) - stats.binom.cdf(low - 1, n, q) < 0.95:
        return missing("no-interval", f"{n} values are too few for an interval.", n=n, unit=unit, value=value)
    return Estimate(value, float(ordered[low - 1]), float(ordered[high]), n, unit, "order statistics")
