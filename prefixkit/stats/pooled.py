"""One model of both arms: `ttft ~ tokens + arm + arm:tokens`, so that their difference is a coefficient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prefixkit.stats.adequacy import order_terms
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import PER_1K, Line
from prefixkit.stats.regression import regress


@dataclass(frozen=True, slots=True)
class Pooled:
    """Coefficients with off as the base: its line, and how on differs in level (at 0 tokens) and slope."""

    intercept_off: Estimate
    slope_off: Estimate
    on_minus_off_ms: Estimate
    slope_on_minus_off: Estimate
    r2: float | None
    n: int


def pooled(on: Line, off: Line) -> Pooled:
    """Fit both arms in one regression; noise may differ between arms and grow with length."""
    n = on.n + off.n
    for line in (off, on):
        if not line.has_interval or line.rows is None:
            level = missing(line.status, line.note, n=n, unit="ms")
            slope = missing(line.status, line.note, n=n, unit="ms/1k tokens")
            return Pooled(level, slope, level, slope, None, n)
    assert on.rows is not None and off.rows is not None
    tokens = np.concatenate([off.rows.tokens, on.rows.tokens])
    arm = np.concatenate([np.zeros(off.n), np.ones(on.n)])
    y = np.concatenate([off.rows.ttft_ms, on.rows.ttft_ms])
    columns = [tokens, arm, arm * tokens]
    for line, inside in ((off, arm == 0), (on, arm == 1)):
        if line.trend and line.rows is not None:
            block = np.zeros((n, line.trend))
            block[inside] = order_terms(line.rows)
            columns += [*block.T]
    robust = on.regression is not None and off.regression is not None and on.regression.robust and off.regression.robust
    model = regress(y, np.column_stack(columns), scale_by=tokens, groups=arm, robust=robust)
    spread = float(((y - y.mean()) ** 2).sum())
    return Pooled(
        model.at(*[0.0] * len(columns)).estimate(n=n, unit="ms", method=model.method),
        model.coefficient(0).scaled(PER_1K).estimate(n=n, unit="ms/1k tokens", method=model.method),
        model.coefficient(1).estimate(n=n, unit="ms", method=model.method),
        model.coefficient(2).scaled(PER_1K).estimate(n=n, unit="ms/1k tokens", method=model.method),
        1 - model.rss / spread if spread > 0 else None,
        n,
    )
