"""The line `ttft_ms ~ prompt_tokens` of one arm, from single requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prefixkit.stats.adequacy import ALPHA, curvature, drift_effect, lack_of_fit, trend_columns
from prefixkit.stats.estimate import Estimate, Verdict, missing
from prefixkit.stats.regression import Contrast, Regression, regress
from prefixkit.stats.rows import Floats, Ints, Rows

PER_1K = 1000.0
GRID = 41
NOT_FIXED = "not a fixed cost (curvature)"


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """The mean line and its pointwise interval on a grid of prompt lengths inside the measured range."""

    tokens: Floats
    mean_ms: Floats
    low_ms: Floats
    high_ms: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One fitted line; where `status` is not "ok", `note` says what it lacks."""

    arm: str
    phase: str
    status: str
    note: str
    n: int
    dropped: dict[str, int]
    slope: Estimate
    intercept: Estimate
    r2: float | None = None
    lack_of_fit: Verdict = field(default_factory=lambda: Verdict("not tested", status="not-estimable"))
    curvature: Estimate = field(default_factory=lambda: missing("not-estimable", "No line, so no curvature."))
    drift: Estimate = field(default_factory=lambda: missing("not-estimable", "No line, so no drift."))
    rows: Rows | None = None
    regression: Regression | None = None
    trend: int = 0

    @property
    def band(self) -> Band | None:
        """Return the mean line with its band, None without intervals."""
        if self.regression is None or self.rows is None or not self.has_interval:
            return None
        return _band(self.regression, self.rows, self.trend)

    @property
    def outliers(self) -> Ints:
        """Return the places in `rows` of requests more than 5 robust standard deviations off the line; they stay in."""
        if self.regression is None:
            return np.zeros(0, dtype=np.int64)
        size = np.abs(self.regression.residuals)
        return np.flatnonzero(size > 5 * 1.4826 * np.median(size))

    @property
    def measured_range(self) -> tuple[float, float] | None:
        """Return the shortest and longest prompt of the data."""
        return None if self.rows is None or not self.rows.n else (self.rows.tokens.min(), self.rows.tokens.max())

    @property
    def has_interval(self) -> bool:
        """Tell whether the slope has an interval."""
        return self.regression is not None and self.slope.low is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain JSON values."""
        return {
            "status": self.status,
            "n": self.n,
            "slope_ms_per_1k": self.slope.value,
            "slope_ci": self.slope.ci,
            "intercept_ms": self.intercept.value,
            "intercept_ci": self.intercept.ci,
            "intercept_status": self.intercept.status,
            "r2": self.r2,
            "method": self.slope.method,
            "lack_of_fit_p": self.lack_of_fit.p,
            "quadratic": self.curvature.to_dict(),
            "drift": self.drift.to_dict(),
            "dropped": self.dropped,
            "note": self.note,
        }

    def slope_contrast(self) -> Contrast:
        """Return the slope in ms per 1,000 tokens."""
        assert self.regression is not None
        return self.regression.coefficient(0).scaled(PER_1K)

    def mean_contrast(self, tokens: float) -> Contrast:
        """Return the mean line at a length, in the middle of the run."""
        assert self.regression is not None
        return self.regression.at(tokens, *([0.0] * self.trend))

    def predict(self, tokens: float) -> Estimate:
        """Return the mean TTFT at a prompt length; status "extrapolated" outside the measured lengths."""
        span = self.measured_range
        if span is None or not self.has_interval or self.regression is None:
            return missing(self.status, self.note, unit="ms")
        inside = span[0] <= tokens <= span[1]
        note = "" if inside else f"{tokens:,.0f} tokens is outside the measured {span[0]:,.0f} to {span[1]:,.0f}."
        return self.mean_contrast(tokens).estimate(
            n=self.n, unit="ms", method=self.regression.method, status="ok" if inside else "extrapolated", note=note
        )


def fit_line(rows: Rows, arm: str, phase: str) -> Line:
    """Fit the line of one arm's rows; degenerate data give a status and a sentence."""
    problem = _no_line(rows, arm, phase)
    if problem:
        status, note, value = problem
        return Line(
            arm, phase, status, note, rows.n, rows.dropped,
            missing(status, note, n=rows.n, unit="ms/1k tokens", value=value),
            missing(status, note, n=rows.n, unit="ms"),
            rows=rows,
        )  # fmt: skip
    repeated = bool((rows.repeats > 1).any())
    trend = trend_columns(rows) if repeated else None
    columns = rows.tokens[:, None] if trend is None else np.column_stack([rows.tokens, trend])
    model = regress(rows.ttft_ms, columns, scale_by=rows.tokens, robust=repeated or rows.n >= 10)
    plain = np.corrcoef(rows.tokens, rows.ttft_ms)[0, 1] ** 2
    k = 0 if trend is None else trend.shape[1]
    if model.exact:
        note = f"The {rows.n} points lie on one line to rounding: nothing to make an interval from."
        return Line(
            arm, phase, "exact", note, rows.n, rows.dropped,
            missing("exact", note, n=rows.n, unit="ms/1k tokens", value=model.coefficient(0).value * PER_1K),
            missing("exact", note, n=rows.n, unit="ms", value=model.at(0.0, *([0.0] * k)).value),
            r2=float(plain), rows=rows,
        )  # fmt: skip
    method = model.method + (", run-order trend removed" if k else "")
    status, note = ("ok", "") if repeated or rows.n >= 10 else ("single-repeat", _single(rows))
    slope = (
        model.coefficient(0)
        .scaled(PER_1K)
        .estimate(n=rows.n, unit="ms/1k tokens", method=method, status=status, note=note)
    )
    (bend, bend_p), misfit = curvature(rows, trend), lack_of_fit(rows, trend)
    beyond = f"At 0 tokens, beyond the shortest prompt measured ({rows.tokens.min():,.0f} tokens)."
    level = model.at(0.0, *([0.0] * k)).estimate(
        n=rows.n, unit="ms", method=method, status=status, note=f"{beyond} {note}".strip()
    )
    return Line(
        arm, phase, status, note, rows.n, rows.dropped, slope, _judged_intercept(level, bend, bend_p, misfit, rows),
        r2=float(plain), lack_of_fit=misfit, curvature=bend,
        drift=drift_effect(rows), rows=rows, regression=model, trend=k,
    )  # fmt: skip


def _no_line(rows: Rows, arm: str, phase: str) -> tuple[str, str, float | None] | None:
    lost = ", ".join(f"{count} {reason}" for reason, count in sorted(rows.dropped.items()))
    if rows.n == 0:
        if rows.dropped and set(rows.dropped) <= {"failed"}:
            return "failed", f"All {sum(rows.dropped.values())} {phase} requests of arm {arm} failed.", None
        if lost:
            return "empty", f"Arm {arm} has no usable {phase} request (left out: {lost}).", None
        return "empty", f"Arm {arm} has no {phase} request of experiment length.", None
    if rows.lengths < 2 or np.ptp(rows.tokens) == 0:
        return "one-length", f"All {rows.n} {phase} requests of arm {arm} have one prompt length: no slope.", None
    if rows.n == 2:
        slope = float((rows.ttft_ms[1] - rows.ttft_ms[0]) / (rows.tokens[1] - rows.tokens[0])) * PER_1K
        return "two-points", f"Two {phase} requests of arm {arm} make a line but no interval.", slope
    if np.ptp(rows.ttft_ms) == 0:
        note = f"All {rows.n} {phase} requests of arm {arm} took the same time: a stuck clock or made-up data."
        return "constant", note, 0.0
    return None


def _single(rows: Rows) -> str:
    return (
        f"Each of {rows.lengths} lengths was sent once: the interval holds misfit and noise together, takes noise"
        " to be equal at all lengths, and can test neither."
    )


def _judged_intercept(level: Estimate, bend: Estimate, bend_p: float | None, misfit: Verdict, rows: Rows) -> Estimate:
    reasons = []
    if level.value is not None and level.value < 0:
        reasons.append("the intercept is negative")
    # Two tests, 5 % together.
    if bend_p is not None and bend_p < ALPHA / 2:
        reasons.append(f"the quadratic term is {bend}")
    if misfit.p is not None and misfit.p < ALPHA / 2:
        reasons.append(f"lack of fit p = {misfit.p:.2g}")
    if not reasons:
        return level
    note = f"{NOT_FIXED}: {'; '.join(reasons)}. Shortest prompt measured: {rows.tokens.min():,.0f} tokens."
    return Estimate(level.value, level.low, level.high, level.n, level.unit, level.method, "curvature", note)


def _band(model: Regression, rows: Rows, k: int) -> Band:
    grid = np.linspace(rows.tokens.min(), rows.tokens.max(), GRID)
    mean, half = model.many(np.column_stack([grid, np.zeros((GRID, k))]))
    return Band(grid, mean, mean - half, mean + half)
