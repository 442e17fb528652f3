"""Controls: warm against salted control on one server, control against off, first sends against off, and no gain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.adequacy import order_terms
from prefixkit.stats.cells import cells
from prefixkit.stats.equivalence import Equivalence, equivalence
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import PER_1K, Line, fit_line
from prefixkit.stats.lines import Fit
from prefixkit.stats.ratio import mean_estimate, paired_reduction
from prefixkit.stats.regression import Contrast, regress
from prefixkit.stats.rows import Floats, condition, make_rows, matched_lengths, real, select

MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class PairedSaving:
    """Control against warm at one length, of the same visits on the same server."""

    tokens: float
    saved_ms: Estimate
    reduction: Estimate


@dataclass(frozen=True, slots=True)
class LeadingContrast:
    """Warm against salted control, pair by pair: nothing else differs."""

    by_length: tuple[PairedSaving, ...]
    saved_per_1k: Estimate
    slope_reduction: Estimate
    pairs: int
    note: str


def visit_pairs(records: Iterable[Mapping[str, Any]], first: str = "control", second: str = "warm") -> list[Any]:
    """Return (first, second) probes of arm on that belong to one visit: same length and round."""
    chosen = select(records, "length", "on")
    sides: dict[str, dict[Any, Any]] = {first: {}, second: {}}
    for probe in chosen:
        side = sides.get(str(probe["phase"]))
        key = (real(probe.get("target_tokens")), real(condition(probe, "round")))
        if side is not None and None not in key:
            side[key] = probe
    return [(sides[first][key], sides[second][key]) for key in sides[first] if key in sides[second]]


def leading_contrast(records: Iterable[Mapping[str, Any]]) -> LeadingContrast:
    """Estimate what the cache saves from the pairs of arm on; drift that both members share cancels."""
    pairs = visit_pairs(records)
    if not pairs:
        empty = missing("empty", "No visit of arm on has both a control and a warm request.", unit="ms/1k tokens")
        return LeadingContrast((), empty, missing("empty", empty.note, unit="fraction"), 0, empty.note)
    differences = make_rows([{**c, "ttft_ms": c["ttft_ms"] - w["ttft_ms"]} for c, w in pairs])
    ordered = sorted(pairs, key=lambda pair: pair[0].get("order") or 0) if differences.ordered else pairs
    control, warm = (np.array([p[i]["ttft_ms"] for p in ordered], dtype=float) for i in (0, 1))
    by_length = tuple(
        PairedSaving(
            float(differences.tokens[inside].mean()),
            mean_estimate(differences.ttft_ms[inside]),
            paired_reduction(warm[inside], control[inside]),
        )
        for inside in (differences.length == i for i in range(differences.lengths))
    )
    line = fit_line(differences, "on", "control minus warm")
    return LeadingContrast(by_length, line.slope, _slope_reduction(line, warm, control), len(pairs), line.note)


def _slope_reduction(line: Line, warm: Floats, control: Floats) -> Estimate:
    """Return `1 - slope_warm/slope_control` of paired requests, by a line whose slope is zero at the true ratio."""
    if not line.has_interval or line.rows is None:
        return missing(line.status, line.note, n=2 * line.n, unit="fraction")
    rows = line.rows
    trend = [*order_terms(rows).T] if line.trend else []
    columns = np.column_stack([rows.tokens, *trend])
    slopes = [regress(y, columns, scale_by=rows.tokens).coefficient(0).value for y in (warm, control)]
    if slopes[1] == 0:
        return missing("not-estimable", "The control's slope is zero.", n=2 * line.n, unit="fraction")
    ratio = slopes[0] / slopes[1]
    # Delta method on pairs: warm - ratio * control holds both noises and what they share.
    rest = regress(warm - ratio * control, columns, scale_by=rows.tokens).coefficient(0)
    found = Contrast(1 - ratio, rest.variance / slopes[1] ** 2, rest.df)
    return found.estimate(n=2 * line.n, unit="fraction", method=f"pairs, HC2, t({rest.df:.1f})")


def control_against_off(fitted: Fit, margin: float = MARGIN) -> Equivalence:
    """Test whether salted requests of arm on cost what arm off costs: same machine, same server otherwise."""
    return _lines_equal(
        fitted.control, fitted.off, margin, "Salted control against off",
        "the machine or the servers differed between arms",
    )  # fmt: skip


def first_sends_against_off(fitted: Fit, margin: float = MARGIN) -> Equivalence:
    """Test whether caching costs nothing on prompts that were never seen before (the negative control)."""
    return _lines_equal(
        fitted.cold, fitted.off, margin, "Unique prompts with the cache on against off",
        "storing blocks has a cost here, or the servers differed",
    )  # fmt: skip


def _lines_equal(line: Line, reference: Line, margin: float, what: str, if_not: str) -> Equivalence:
    value, base, n = grand_means(line, reference)
    return equivalence(value, base, margin, n=n, unit="ms", what=what, if_not=if_not)


def grand_means(a: Line, b: Line) -> tuple[Contrast | None, Contrast | None, int]:
    """Return both mean TTFTs over the lengths that both measured, each length weighing the same."""
    ours, theirs = cells(a), cells(b)
    if ours is None or theirs is None:
        return None, None, a.n + b.n
    shared = matched_lengths(ours.rows, theirs.rows)
    return ours.grand([i for i, _, _ in shared]), theirs.grand([j for _, j, _ in shared]), a.n + b.n


def why_no_gain(fitted: Fit, hit_rate: float | None = None) -> Estimate:
    """Return off minus on over shared lengths; where its interval holds 0 the note says what could hide a gain."""
    on, off, n = grand_means(fitted.on, fitted.off)
    if on is None or off is None:
        return missing("not-estimable", "Both arms need repeated lengths in common.", n=n, unit="ms")
    saved = off.minus(on)
    found = saved.estimate(n=n, unit="ms", method=f"Satterthwaite t({saved.df:.1f})")
    if found.low is not None and found.low > 0:
        return found
    if found.high is not None and found.high < 0:
        note = "On is slower than off: queueing, another load on the machine, or different servers."
        return Estimate(found.value, found.low, found.high, n, "ms", found.method, "slower", note)
    reasons = [f"Not distinguishable from no gain: {found}."]
    if hit_rate is not None:
        reasons.append(f"The hit rate is {hit_rate:.1%}, so the cache {'worked' if hit_rate > 0.5 else 'hardly hit'}.")
    reasons.append(_expected(fitted, found))
    return Estimate(found.value, found.low, found.high, n, "ms", found.method, "not-distinguishable", " ".join(reasons))


def _expected(fitted: Fit, found: Estimate) -> str:
    rows = fitted.on.rows
    slope = fitted.off.slope.value
    if rows is None or slope is None or np.isnan(rows.cached).all():
        return "Whole answers hide it (time first tokens), and so do queueing and a first request that warms up."
    expected = slope / PER_1K * float(np.nanmean(rows.cached))
    half = found.half_width or 0.0
    if abs(expected) < half:
        return f"Prompts are short: the off slope predicts {expected:.1f} ms, less than the noise of {half:.1f} ms."
    return f"The off slope predicts {expected:.1f} ms: look for queueing, decode time in the clock, or warm-up."
