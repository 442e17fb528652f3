"""How many repeats a wanted precision needs, and whether a run may stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.contrast import visit_pairs
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.ratio import mean_estimate, paired_reduction
from prefixkit.stats.regression import t_quantile
from prefixkit.stats.rows import Rows, length_rows

# A run that stops at its first narrow interval tends to stop where noise happens to look small, so that this interval
# covers less than 95 %: looking from 5 repeats on 92 to 93 %, from 10 on 94 to 95 % (tests/bench/stat_coverage.md).
MIN_REPEATS = 10
MAX_NEEDED = 1000


@dataclass(frozen=True, slots=True)
class Repeats:
    """The reduction so far, and the repeats that a half-width of `precision` needs (None: cannot be said)."""

    reduction: Estimate
    precision: float
    have: int
    needed: int | None
    note: str


def repeats_needed(records: Iterable[Mapping[str, Any]], precision: float) -> Repeats:
    """Return how many rounds bring the reduction at the longest prompt to `precision`, judged from these records."""
    reduction, have = _reduction_longest(list(records))
    half = reduction.half_width
    if half is None:
        return Repeats(reduction, precision, have, None, f"No interval yet: {reduction.note}")
    # half = t(have - 1) s / sqrt(have)
    spread = half * np.sqrt(have) / float(t_quantile(have - 1))
    rounds = np.arange(2, MAX_NEEDED + 1, dtype=np.float64)
    enough = rounds[t_quantile(rounds - 1) * spread / np.sqrt(rounds) <= precision]
    if not len(enough):
        return Repeats(reduction, precision, have, None, f"More than {MAX_NEEDED} repeats: reduce the noise instead.")
    needed = int(enough[0])
    note = f"{have} repeats give +-{half:.1%}; +-{precision:.1%} needs about {needed}."
    if half <= precision:
        note = f"{have} repeats give +-{half:.1%}, within the wanted +-{precision:.1%}."
    return Repeats(reduction, precision, have, needed, note)


def narrow_enough(records: Iterable[Mapping[str, Any]], precision: float) -> bool:
    """Tell whether the TTFT reduction at the longest prompt is known to +-`precision` (a fraction), from 10 repeats on.

    Arm on: warm against control of the same visits, or against its cold request. Arm off alone: the relative precision
    of its mean, which the reduction's cannot exceed.
    """
    reduction, have = _reduction_longest(list(records))
    half = reduction.half_width
    return have >= MIN_REPEATS and half is not None and half <= precision


def _reduction_longest(records: list[Mapping[str, Any]]) -> tuple[Estimate, int]:
    for first in ("control", "cold"):
        pairs = visit_pairs(records, first, "warm")
        if pairs:
            longest = max(p[0]["target_tokens"] for p in pairs)
            chosen = [p for p in pairs if p[0]["target_tokens"] == longest]
            off, on = (np.array([p[i]["ttft_ms"] for p in chosen], dtype=float) for i in (0, 1))
            return paired_reduction(on, off), len(chosen)
    rows = length_rows(records).get(("off", "cold"))
    if rows is None or not rows.n:
        return missing("empty", "No request of experiment length.", unit="fraction"), 0
    return _relative_mean(rows)


def _relative_mean(rows: Rows) -> tuple[Estimate, int]:
    values = rows.ttft_ms[rows.length == rows.lengths - 1]
    mean = mean_estimate(values)
    if mean.value is None or mean.low is None or mean.high is None:
        return missing(mean.status, mean.note, n=mean.n, unit="fraction"), len(values)
    low, high = mean.low / mean.value - 1, mean.high / mean.value - 1
    return Estimate(0.0, low, high, mean.n, "fraction", f"mean of off, {mean.method}"), len(values)
