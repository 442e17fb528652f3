"""Estimates for tables, on plain lists: means, differences and paired ratios, with intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.ratio import mean_estimate, paired_reduction


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
