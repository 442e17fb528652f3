"""Two runs compared (another vLLM, another GPU, last week), or refused where they are not comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import Line
from prefixkit.stats.lines import Fit, fit
from prefixkit.stats.regression import Contrast
from prefixkit.stats.rows import nested

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """Second run minus first in one quantity, with its p value adjusted for how many were tested (Holm)."""

    name: str
    first: Estimate
    second: Estimate
    difference: Estimate
    p: float | None
    differs: bool


@dataclass(frozen=True, slots=True)
class RunComparison:
    """`status` is "ok" or "refused"; `note` says what differs or why nothing was compared."""

    status: str
    note: str
    same: dict[str, Any]
    changed: dict[str, tuple[Any, Any]]
    differences: tuple[Difference, ...]


MUST_EQUAL = ("model", "weights", "dtype", "block_size")
SHOWN = ("vllm", "gpu", "cpu", "driver", "os", "started_at")


def compare(first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]]) -> RunComparison:
    """Compare slopes and mean TTFTs of two runs' arms; refuse where model, weights, dtype or block size differ."""
    a, b = list(first), list(second)
    facts_a, facts_b = run_facts(a), run_facts(b)
    differing = {
        key: (facts_a.get(key), facts_b.get(key))
        for key in (*MUST_EQUAL, *SHOWN)
        if facts_a.get(key) != facts_b.get(key)
    }
    same = {key: value for key, value in facts_a.items() if key not in differing}
    refused = [key for key in MUST_EQUAL if key in differing]
    if refused:
        said = "; ".join(f"{key} is {differing[key][0]} and {differing[key][1]}" for key in refused)
        note = f"Not comparable: {said}. A difference would be of these, not of what was meant to change."
        return RunComparison("refused", note, same, differing, ())
    differences = holm(_tests(fit(a), fit(b)))
    found = [d for d in differences if d.differs]
    tested = [d for d in differences if d.p is not None]
    if not tested:
        note = "Nothing could be compared: neither arm has a line with an interval in both runs."
    elif found:
        note = "; ".join(f"{d.name}: {d.difference}" for d in found)
    else:
        note = f"No difference seen in {len(tested)} quantities (5 % together)."
    return RunComparison("ok", note, same, differing, differences)


def run_facts(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what must be equal, and what may differ, of the last main run of the records."""
    facts: dict[str, Any] = {}
    for record in records:
        if record.get("record") != "run" or record.get("experiment"):
            continue
        dtype = record.get("dtype") or nested(record, "params", "server", "engine_args", "dtype")
        seen = {"model": nested(record, "model", "name"), "weights": nested(record, "model", "weights"), "dtype": dtype}
        seen |= {key: record.get(key) for key in ("block_size", *SHOWN)}
        facts |= {key: value for key, value in seen.items() if value is not None}
    return facts


def aa_differs(a: Line, b: Line) -> bool:
    """Tell whether two lines differ in slope or level, 5 % together."""
    return any(d.differs for d in holm(_line_tests("line", a, b)))


def holm(tests: list[tuple[str, Estimate, Estimate, Contrast | None, str]]) -> tuple[Difference, ...]:
    """Turn (name, first, second, contrast, unit) into differences whose false alarms are at most 5 % together."""
    raw = sorted((c.p_value(), i) for i, (_, _, _, c, _) in enumerate(tests) if c is not None)
    adjusted: dict[int, float] = {}
    running = 0.0
    for rank, (p, i) in enumerate(raw):
        running = max(running, min(1.0, p * (len(raw) - rank)))
        adjusted[i] = running
    found = []
    for i, (name, first, second, contrast, unit) in enumerate(tests):
        if contrast is None:
            lacking = first if first.low is None else second
            gap = missing(lacking.status, lacking.note, n=first.n + second.n, unit=unit)
        else:
            method = f"Satterthwaite t({contrast.df:.1f})"
            gap = contrast.estimate(n=first.n + second.n, unit=unit, method=method)
        p_value = adjusted.get(i)
        found.append(Difference(name, first, second, gap, p_value, p_value is not None and p_value < ALPHA))
    return tuple(found)


def _tests(a: Fit, b: Fit) -> list[tuple[str, Estimate, Estimate, Contrast | None, str]]:
    return [test for arm in ("off", "on") for test in _line_tests(arm, a.arms[arm], b.arms[arm])]


def _line_tests(arm: str, a: Line, b: Line) -> list[tuple[str, Estimate, Estimate, Contrast | None, str]]:
    """Compare slope, and level at the middle of the lengths that both lines cover: there level and slope are free."""
    slope: Contrast | None = None
    level: Contrast | None = None
    first = second = missing(a.status if a.status != "ok" else b.status, a.note or b.note, unit="ms")
    name = f"mean TTFT, {arm}"
    if a.has_interval and b.has_interval and a.rows is not None and b.rows is not None:
        slope = b.slope_contrast().minus(a.slope_contrast())
        spans = [(float(rows.tokens.min()), float(rows.tokens.max())) for rows in (a.rows, b.rows)]
        low, high = max(shortest for shortest, _ in spans), min(longest for _, longest in spans)
        if low > high:
            first = second = missing("not-estimable", "The two runs have no range of lengths in common.", unit="ms")
        else:
            middle = min(max(float((a.rows.tokens.mean() + b.rows.tokens.mean()) / 2), low), high)
            level = b.mean_contrast(middle).minus(a.mean_contrast(middle))
            first, second = a.predict(middle), b.predict(middle)
            name = f"mean TTFT at {middle:,.0f} tokens, {arm}"
    return [(f"slope, {arm}", a.slope, b.slope, slope, "ms/1k tokens"), (name, first, second, level, "ms")]
