"""One model for both arms in what was really computed: `ttft ~ uncached tokens + cached tokens`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import PER_1K
from prefixkit.stats.regression import Contrast, Regression, regress
from prefixkit.stats.rows import Floats, real, select

MAX_CORRELATION = 0.999


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """What an uncached and a cached token cost, ms per 1,000, and what attention adds where the costs curve."""

    base_ms: Estimate
    uncached: Estimate
    cached: Estimate
    cached_share: Estimate
    attention: Estimate
    n: int
    dropped: dict[str, int]
    status: str
    note: str
    tokens_range: tuple[float, float] | None = None
    regression: Regression | None = None

    def row(self, uncached: float, cached: float) -> tuple[float, ...]:
        """Return the columns of a request in the middle of the run."""
        assert self.regression is not None
        curve = (attended(uncached, cached),) if self.attention.status == "ok" else ()
        return (uncached, cached, *curve, *[0.0] * (self.regression.columns - 2 - len(curve)))


def attended(uncached: Any, cached: Any) -> Any:
    """Return the pairs of tokens that attention computes, in millions: each uncached token with all before it."""
    return uncached * (cached + uncached / 2) / 1e6


def attribution(records: Iterable[Mapping[str, Any]]) -> Attribution:
    """Fit all requests of experiment `length` of arms on and off by their uncached and cached tokens.

    Run order enters as a trend of each arm. An off request that reports nothing cached counts as 0: its server has no
    cache; elsewhere "not reported" is left out.
    """
    usable = [p for arm in ("off", "on") for p in select(records, "length", arm)]
    kept, cached = [], []
    for probe in usable:
        hits = real(probe.get("cached_tokens"))
        if hits is None and probe["arm"] == "off":
            hits = 0.0
        if hits is not None and 0 <= hits <= probe["prompt_tokens"]:
            kept.append(probe)
            cached.append(hits)
    dropped = {"no usable cached_tokens": len(usable) - len(kept)} if len(kept) < len(usable) else {}
    hit = np.array(cached, dtype=float)
    tokens = np.array([p["prompt_tokens"] for p in kept], dtype=float)
    problem = _problem(tokens, hit, bool(dropped))
    if problem:
        empty = missing(*problem, n=len(kept), unit="ms/1k tokens")
        share = missing(*problem, n=len(kept), unit="fraction")
        level = missing(*problem, n=len(kept), unit="ms")
        return Attribution(level, empty, empty, share, empty, len(kept), dropped, *problem)
    y = np.array([p["ttft_ms"] for p in kept], dtype=float)
    trends = _trends([str(p["arm"]) for p in kept])
    model, curved = _model(y, tokens - hit, hit, trends)
    rest = [0.0] * (model.columns - 2)
    n, method = len(kept), model.method
    uncached, still = model.coefficient(0).scaled(PER_1K), model.coefficient(1).scaled(PER_1K)
    return Attribution(
        base_ms=model.at(0.0, 0.0, *rest).estimate(n=n, unit="ms", method=method),
        uncached=uncached.estimate(n=n, unit="ms/1k tokens", method=method),
        cached=still.estimate(n=n, unit="ms/1k tokens", method=method),
        cached_share=_share(model, n),
        attention=model.coefficient(2).estimate(n=n, unit="ms/million pairs", method=method) if curved else missing(
            "not-seen", "Costs grow in proportion to tokens: no quadratic term seen.", n=n, unit="ms/million pairs"
        ),
        n=n, dropped=dropped, status="ok", note="", tokens_range=(tokens.min(), tokens.max()), regression=model,
    )  # fmt: skip


def _model(y: Floats, uncached: Floats, hit: Floats, trends: Floats) -> tuple[Regression, bool]:
    """Return the model, with the quadratic term of attention where it is clear (5 %), and whether it is in."""
    plain = regress(y, np.column_stack([uncached, hit, trends]), scale_by=uncached)
    pairs = attended(uncached, hit)
    if len(np.unique(pairs)) < 4 or len(y) < 10:
        return plain, False
    curved = regress(y, np.column_stack([uncached, hit, pairs, trends]), scale_by=uncached)
    if curved.exact or not curved.robust or curved.coefficient(2).p_value() > 0.05:
        return plain, False
    return curved, True


def _problem(tokens: Floats, hit: Floats, unreported: bool) -> tuple[str, str] | None:
    if not len(tokens):
        note = "No request reports cached tokens (--enable-prompt-tokens-details)." if unreported else "No requests."
        return "empty", note
    if len(tokens) < 6:
        return "not-estimable", f"{len(tokens)} requests are too few for three coefficients."
    if np.ptp(hit) == 0:
        return "not-estimable", "No two requests differ in cached tokens: what a cached token costs cannot be seen."
    uncached = tokens - hit
    if np.ptp(uncached) == 0 or abs(np.corrcoef(uncached, hit)[0, 1]) > MAX_CORRELATION:
        return "not-estimable", "Cached and uncached tokens move together: their costs cannot be told apart."
    return None


def _share(model: Regression, n: int) -> Estimate:
    """Return cost of a cached token over that of an uncached one (delta method)."""
    uncached, cached = model.coefficient(0), model.coefficient(1)
    if uncached.p_value() > 0.05:
        return missing("not-estimable", "Uncached tokens have no clear cost: no ratio.", n=n, unit="fraction")
    ratio = cached.value / uncached.value
    found = model.combination({1: 1.0, 0: -ratio}).scaled(1 / uncached.value)
    return Contrast(ratio, found.variance, found.df).estimate(n=n, unit="fraction", method="delta, HC2")


def _trends(arms: list[str]) -> Floats:
    """Return one run-order column for each arm that has several requests, -0.5 to 0.5, zero elsewhere."""
    labels = np.array(arms)
    columns = []
    for arm in sorted(set(arms)):
        inside = labels == arm
        if inside.sum() >= 10:
            column = np.zeros(len(arms))
            column[inside] = np.linspace(-0.5, 0.5, int(inside.sum()))
            columns.append(column)
    return np.column_stack(columns) if columns else np.zeros((len(arms), 0))
