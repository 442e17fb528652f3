"""The ceiling: what the cached tokens should save by the off line, what they did, and the most there is to save."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prefixkit.stats.cells import Cells, cell_difference, cells
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import PER_1K, Line
from prefixkit.stats.lines import Fit
from prefixkit.stats.regression import Contrast, combine
from prefixkit.stats.rows import matched_lengths


@dataclass(frozen=True, slots=True)
class Ceiling:
    """At one length: predicted = slope_off x cached tokens, measured = off - on, and the most there is to save."""

    tokens: float
    cached_tokens: float
    predicted_ms: Estimate
    measured_ms: Estimate
    shortfall_ms: Estimate
    bound: Estimate


def ceiling(fitted: Fit) -> tuple[Ceiling, ...]:
    """Compare predicted with measured saving at every length that both arms have; empty where a line is missing."""
    on, off = fitted.on, fitted.off
    ours, theirs = cells(on), cells(off)
    if ours is None or theirs is None or not off.has_interval:
        return ()
    found = []
    for i, j, tokens in matched_lengths(theirs.rows, ours.rows):
        cached = ours.rows.cached[ours.rows.length == j]
        if np.isnan(cached).all():
            continue
        hit = float(np.nanmean(cached))
        found.append(_at(off, ours, j, theirs, i, tokens, hit))
    return tuple(found)


def _at(off: Line, ours: Cells, j: int, theirs: Cells, i: int, tokens: float, hit: float) -> Ceiling:
    slope = off.slope_contrast().scaled(hit / PER_1K)
    n = int((ours.rows.length == j).sum() + (theirs.rows.length == i).sum())
    method = f"slope_off x {hit:,.0f} cached tokens"
    predicted = slope.estimate(n=off.n, unit="ms", method=method) if hit else missing(
        "no-hits", "Nothing was cached at this length.", n=n, unit="ms", value=0.0
    )  # fmt: skip
    a, b = ours.contrast(j), theirs.contrast(i)
    measured = shortfall = cell_difference(b, a, n)
    if a is not None and b is not None:
        # The off mean is one of the points behind the slope; treating them as independent widens the interval.
        gap = combine(slope, b.minus(a), 1.0, -1.0)
        shortfall = gap.estimate(n=n, unit="ms", method="predicted minus measured")
    return Ceiling(tokens, hit, predicted, measured, shortfall, amdahl_bound(off, tokens))


def amdahl_bound(off: Line, tokens: float) -> Estimate:
    """Return the largest possible TTFT reduction at a length: 1 - intercept/TTFT, all that grows with length saved."""
    model = off.regression
    if model is None or not off.has_interval or off.intercept.value is None:
        return missing(off.status, off.note, n=off.n, unit="fraction")
    if off.intercept.value < 0:
        return missing("curvature", f"No bound: the intercept is {off.intercept.note}", n=off.n, unit="fraction")
    rest = (0.0,) * off.trend
    whole = off.mean_contrast(tokens)
    if whole.value <= 0:
        return missing("not-estimable", "The off line is not positive here.", n=off.n, unit="fraction")
    share = off.intercept.value / whole.value
    gap = model.difference((0.0, *rest), (tokens, *rest), share).scaled(1 / whole.value)
    status, note = ("curvature", off.intercept.note) if off.intercept.status == "curvature" else ("ok", "")
    about = Contrast(1 - share, gap.variance, gap.df)
    return about.estimate(n=off.n, unit="fraction", method="delta, HC2", status=status, note=note)
