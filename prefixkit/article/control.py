"""The control: warm against a forced miss on one server, and the forced miss against the server without the cache."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.length import fitted
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import control as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record
from prefixkit.stats.contrast import LeadingContrast, control_against_off, first_sends_against_off, leading_contrast
from prefixkit.stats.equivalence import Equivalence
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.ratio import mean_contrast, reduction
from prefixkit.stats.regression import combine
from prefixkit.stats.ttft_parts import split_ttft


@lru_cache(maxsize=8)
def contrasts(data: Data) -> tuple[LeadingContrast, Equivalence, Equivalence]:
    """Return warm against control, control against off, first sends against off."""
    margin = data.settings.control_margin
    found = fitted(data)
    return leading_contrast(data.records), control_against_off(found, margin), first_sends_against_off(found, margin)


def by_target(rows: list[Record]) -> dict[int, list[float]]:
    """Return TTFTs by the length asked for."""
    groups: dict[int, list[float]] = {}
    for r in rows:
        if r.get("target_tokens") is not None:
            groups.setdefault(int(r["target_tokens"]), []).append(float(r["ttft_ms"]))
    return groups


def _share(control: list[float], off: list[float]) -> Estimate:
    """Return control / off - 1 at one length."""
    a, b = (mean_contrast(np.array(values, dtype=float)) for values in (control, off))
    if a is None or b is None:
        return Estimate(None)
    found = reduction(a, b, n=len(control) + len(off))
    value, low, high = (None if end is None else -end for end in (found.value, found.high, found.low))
    return Estimate(value, low, high, found.n, "fraction", found.method)


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the control."""
    leading, control_off, first_off = contrasts(data)
    both = "on: length control and warm probes, paired by visit"
    longest = leading.by_length[-1] if leading.by_length else None
    claims.add("control_pairs", leading.pairs or None, "count", source=both)
    claims.add("control_longest_tokens", longest.tokens if longest else None, "tokens", source=both)
    empty = Estimate(None)
    claims.estimate("control_minus_warm_longest_ms", longest.saved_ms if longest else empty, "ms", f"{both}, longest")
    claims.estimate(
        "control_reduction_longest", longest.reduction if longest else empty, "fraction", f"{both}, longest"
    )
    claims.estimate("control_saved_ms_per_1k", leading.saved_per_1k, "ms/1k", f"{both}, slope of the difference")
    claims.estimate(
        "control_slope_reduction", leading.slope_reduction, "fraction", f"{both}, 1 - slope_warm / slope_control"
    )
    for name, found, source in (
        ("control", control_off, "on: length control, off: length cold; mean over lengths"),
        ("unique", first_off, "on: length cold, off: length cold; mean over lengths"),
    ):
        claims.estimate(f"{name}_minus_off_ms", found.difference, "ms", source)
        claims.estimate(f"{name}_minus_off_share", found.relative, "fraction", f"{source}, over off")
        claims.add(f"{name}_equivalence_p", found.verdict.p, "p", source=f"{source}, two one-sided tests")
        claims.add(f"{name}_verdict", found.decision, "text", source=f"{source}, two one-sided tests, 5 %")
    claims.estimate("control_engine_minus_off_ms", _engine_difference(data), "ms",
                    "on: length control, off: length cold; engine as the server says; mean over lengths")  # fmt: skip
    control, off = _groups(data)
    for target in sorted(control.keys() | off.keys()):
        for name, groups in (("control", control), ("off", off)):
            claims.estimate(f"control_{target}_{name}_ms", mean(groups.get(target, [])), "ms",
                            f"length {name} probes, {target} tokens asked for")  # fmt: skip
        claims.estimate(f"control_{target}_share", _share(control.get(target, []), off.get(target, [])), "fraction",
                        f"length control and off probes, {target} tokens asked for, control / off - 1")  # fmt: skip


def _engine_difference(data: Data) -> Estimate:
    """Return control minus off in the engine's part alone, the mean over lengths that both have."""
    sides = [
        _engine_times(data.probes(arm, "length", phase)) for arm, phase in (("on", "control"), ("off", "cold"))
    ]  # fmt: skip
    found = []
    for target in sorted(sides[0].keys() & sides[1].keys()):
        control, off = (mean_contrast(np.array(side[target])) for side in sides)
        if control is None or off is None:
            return Estimate(None)
        found.append(control.minus(off))
    if not found:
        return Estimate(None)
    total = found[0]
    for other in found[1:]:
        total = combine(total, other, 1.0, 1.0)
    n = sum(len(v) for side in sides for v in side.values())
    return total.scaled(1 / len(found)).estimate(n=n, unit="ms", method="Welch at each length")


def _engine_times(rows: list[Record]) -> dict[int, list[float]]:
    groups: dict[int, list[float]] = {}
    for r in rows:
        split = split_ttft(r)
        if split is not None and r.get("target_tokens") is not None:
            groups.setdefault(int(r["target_tokens"]), []).append(split["engine"] + split["queue"])
    return groups


def _groups(data: Data) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    return by_target(data.probes("on", "length", "control")), by_target(data.probes("off", "length", "cold"))


def _picture(ctx: Context) -> Picture | None:
    rows = []
    for target in sorted(_groups(ctx.data)[0]):
        found = ctx.claims.get(f"control_{target}_share")
        if found and found.value is not None:
            low, high = found.ci or (np.nan, np.nan)
            rows.append({"prompt_tokens": target, "share": found.value, "low": low, "high": high})
    return figures.differences(pd.DataFrame(rows), ctx.data.settings.control_margin, ctx.words) if rows else None


def _table(ctx: Context) -> Table | None:
    columns = ("off_ms", "control_ms", "share")
    rows = [(f"{t:,}", *(ctx.ci(f"control_{t}_{c}") for c in columns)) for t in sorted(_groups(ctx.data)[0])]
    return Table(("target_tokens", "ttft_off", "ttft_control", "control_share"), tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    leading, control_off, _ = contrasts(ctx.data)
    if not leading.pairs:
        return ctx.say("control.none")
    saved = leading.by_length[-1].saved_ms
    said = [ctx.say("control.leading" if saved.low is not None and saved.low > 0 else "control.leading_unclear")]
    key = control_off.decision.replace(" ", "_")
    said.append(ctx.say(f"control.{key}"))
    if key == "equivalent":
        apart = control_off.difference.excludes(0)
        said.append(ctx.say("control.something_else") if apart else _nothing_else(ctx))
        if apart and ctx.has("control_engine_minus_off_ms"):
            said.append(ctx.say("control.where"))
    if key != "not_tested" and ctx.has("unique_minus_off_share"):
        equal = contrasts(ctx.data)[2].decision == "equivalent"
        said.append(ctx.say("control.unique_equal" if equal else "control.unique"))
    return joined(*said)


def _nothing_else(ctx: Context) -> str:
    """Say that nothing beside the cache shows, or at how many single lengths something does."""
    control, off = _groups(ctx.data)
    ends = [ctx.claims[f"control_{target}_share"].ci for target in control.keys() & off.keys()]
    apart = sum(not low <= 0 <= high for low, high in filter(None, ends))
    if not apart:
        return ctx.say("control.nothing_else")
    return ctx.say("control.by_length", apart=str(apart), lengths=str(len(ends)))


SECTION = Section(claim, {"control": _picture}, {"control": _table}, {"control": _sentences})
