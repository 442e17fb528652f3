"""Does a straight line hold: run-order trend, lack of fit, the quadratic term of attention."""

from __future__ import annotations

import numpy as np
from scipy import special

from prefixkit.stats.estimate import Estimate, Verdict, missing
from prefixkit.stats.regression import regress
from prefixkit.stats.rows import Floats, Rows

ADJUST_FROM = 10
MAX_INFLATION = 1.5
MAX_LENGTHS = 60
ALPHA = 0.05


def trend_columns(rows: Rows) -> Floats | None:
    """Return the run-order terms (level and slope change over the run) that the line is adjusted for, or None.

    Where the requests carry their `order` the terms always enter; where only the sequence of the records is known they
    enter if it goes in rounds and they matter (F test, 5 %). Order that is tied to length cannot be told from slope and
    never enters.
    """
    if rows.n < ADJUST_FROM or inflation(rows) > MAX_INFLATION:
        return None
    columns = order_terms(rows)
    if rows.ordered:
        return columns
    if not in_rounds(rows):
        return None
    plain = regress(rows.ttft_ms, rows.tokens[:, None], robust=False)
    full = regress(rows.ttft_ms, np.column_stack([rows.tokens, columns]), robust=False)
    if full.exact or full.df_residual < 1:
        return None
    f = (plain.rss - full.rss) / columns.shape[1] / (full.rss / full.df_residual)
    return columns if special.fdtrc(columns.shape[1], full.df_residual, f) < ALPHA else None


def in_rounds(rows: Rows) -> bool:
    """Tell whether the sequence visits every length once before any a second time, and so on."""
    k = rows.lengths
    if rows.n % k or rows.n < 2 * k:
        return False
    return bool((np.sort(rows.length.reshape(-1, k), axis=1) == np.arange(k)).all())


def inflation(rows: Rows) -> float:
    """Return how far the run-order terms inflate the slope's variance: 1 in a balanced order, infinite when sorted."""
    x = rows.tokens - rows.tokens.mean()
    z, _ = np.linalg.qr(np.column_stack([np.ones(rows.n), order_terms(rows)]))
    rest = x - z @ (z.T @ x)
    left = float(rest @ rest)
    return float(x @ x) / left if left > 1e-9 * float(x @ x) else float("inf")


def drift_effect(rows: Rows) -> Estimate:
    """Estimate how much TTFT changed from the first to the last request at equal length, in ms.

    Where lengths are repeated each has a mean of its own: what a straight line misses is then not taken for noise.
    """
    if rows.n < ADJUST_FROM:
        return missing("not-estimable", f"{rows.n} requests are too few to see drift.", n=rows.n, unit="ms")
    if inflation(rows) > MAX_INFLATION:
        note = "The requests come in order of length: drift cannot be told from slope."
        return missing("confounded", note, n=rows.n, unit="ms")
    free = rows.lengths <= MAX_LENGTHS and rows.n >= 2 * rows.lengths + 2
    level = length_dummies(rows) if free else rows.tokens[:, None]
    model = regress(rows.ttft_ms, np.column_stack([level, order_terms(rows)]), scale_by=rows.tokens)
    if model.exact:
        return missing("exact", "No noise to judge drift by.", n=rows.n, unit="ms")
    found = model.coefficient(level.shape[1]).estimate(n=rows.n, unit="ms", method=model.method)
    share = abs(found.value or 0.0) / rows.ttft_ms.mean()
    note = f"TTFT changed by {share:.1%} of its mean over the run." if found.excludes(0) else "No drift seen."
    return Estimate(found.value, found.low, found.high, found.n, found.unit, found.method, "ok", note)


def curvature(rows: Rows, trend: Floats | None) -> tuple[Estimate, float | None]:
    """Return the quadratic term, ms per (1,000 tokens)², and its p value; attention makes it positive."""
    unit = "ms/(1k tokens)²"
    if rows.lengths < 3 or rows.n < 5:
        note = f"{rows.lengths} lengths, {rows.n} requests: too few to show curvature."
        return missing("not-estimable", note, n=rows.n, unit=unit), None
    x = rows.tokens / 1000
    columns = [x, (x - x.mean()) ** 2] + ([] if trend is None else [*trend.T])
    model = regress(rows.ttft_ms, np.column_stack(columns), scale_by=rows.tokens, robust=bool((rows.repeats > 1).any()))
    if model.df_residual < 1 or model.exact:
        return missing("not-estimable", "Too few requests for a curvature interval.", n=rows.n, unit=unit), None
    found = model.coefficient(1)
    return found.estimate(n=rows.n, unit=unit, method=model.method), found.p_value()


def lack_of_fit(rows: Rows, trend: Floats | None) -> Verdict:
    """Test the straight line against a free mean for each length (F, weighted for noise that grows with length)."""
    groups = rows.lengths
    extra = 0 if trend is None else trend.shape[1]
    free = rows.n - groups - extra
    if groups < 3 or free < 1:
        note = "Lack of fit needs three lengths, some of them repeated."
        return Verdict("not tested", n=rows.n, status="not-estimable", note=note)
    weights = 1 / _length_deviation(rows)
    tail = np.zeros((rows.n, 0)) if trend is None else trend
    line = np.column_stack([np.ones(rows.n), rows.tokens / 1000, tail])
    rss_line = _weighted_rss(rows.ttft_ms, line, weights)
    level = _within(rows, rows.ttft_ms[:, None], weights)[:, 0]
    rss_cells = _weighted_rss(level, _within(rows, tail, weights), weights)
    if rss_cells <= 1e-18 * float((weights * rows.ttft_ms) @ (weights * rows.ttft_ms)):
        return Verdict("not tested", n=rows.n, status="not-estimable", note="Repeats are equal: no noise to test with.")
    f = max(0.0, (rss_line - rss_cells) / (groups - 2) / (rss_cells / free))
    p = float(special.fdtrc(groups - 2, free, f))
    decision = "line does not fit" if p < ALPHA else "no lack of fit seen"
    return Verdict(decision, p, f, rows.n, f"F({groups - 2}, {free}), weighted", note=f"{decision} (p = {p:.2g})")


def order_terms(rows: Rows) -> Floats:
    """Return the run-order terms: place in the run (-0.5 to 0.5), and that times the centred length."""
    return np.column_stack([rows.order, rows.order * (rows.tokens - rows.tokens.mean()) / 1000])


def length_dummies(rows: Rows) -> Floats:
    """Return a column for each length but the first: 1 where a request has it."""
    return np.eye(rows.lengths)[rows.length][:, 1:]


def _length_deviation(rows: Rows) -> Floats:
    """Return each row's noise by a straight line in length through the spread within lengths."""
    means = np.bincount(rows.length, rows.ttft_ms) / rows.repeats
    repeats = rows.repeats[rows.length]
    inside = repeats > 1
    size = np.abs(rows.ttft_ms - means[rows.length])[inside] / np.sqrt(1 - 1 / repeats[inside])
    x = rows.tokens[inside]
    mean = size.mean()
    spread = float((x - x.mean()) @ (x - x.mean()))
    slope = float((x - x.mean()) @ size) / spread if spread > 0 else 0.0
    return np.asarray(np.maximum(mean + slope * (rows.tokens - x.mean()), 0.2 * mean + 1e-12))


def _within(rows: Rows, columns: Floats, weights: Floats) -> Floats:
    """Return the columns less their weighted mean of each length, which frees every length's level."""
    share = weights**2
    total = np.bincount(rows.length, share)
    means = [np.bincount(rows.length, share * column) / total for column in columns.T]
    return np.column_stack([columns[:, :0], *(c - m[rows.length] for c, m in zip(columns.T, means, strict=True))])


def _weighted_rss(y: Floats, design: Floats, weights: Floats) -> float:
    a, b = design * weights[:, None], y * weights
    rest = b - a @ np.linalg.lstsq(a, b, rcond=None)[0]
    return float(rest @ rest)
