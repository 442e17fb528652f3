"""Beside the published RTX 3090 measurement: its five rows, our refit of them, and what they cannot decide."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.length import bands, fitted, points
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import reference as figures
from prefixkit.figures.style import Picture
from prefixkit.stats import Estimate, Fit, fit
from prefixkit.stats.reanalysis import QUESTIONS, SYSTEM_TOKENS, TOKENS_SAVED, Reanalysis, reanalyse

SOURCE = "published table of the reference articles (RTX 3090, Qwen2.5-7B-Instruct), refitted"

NEAR = 0.05


@lru_cache(maxsize=1)
def published() -> Reanalysis:
    """Return the published rows, analysed again."""
    return reanalyse()


def _lengths() -> list[dict[str, object]]:
    return [r for r in published().rows if r["experiment"] == "length"]


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the refit, and of ours beside it."""
    found = published()
    for index, row in enumerate(_lengths(), 1):
        claims.add(f"reference_{index}_tokens", row["prompt_tokens"], "tokens", source=SOURCE)  # type: ignore[arg-type]
        for arm in ("off", "on"):
            claims.add(f"reference_{index}_{arm}_ms", row[f"{arm}_ms"], "ms", source=SOURCE)  # type: ignore[arg-type]
        off, on = float(str(row["off_ms"])), float(str(row["on_ms"]))
        claims.add(f"reference_{index}_reduction", 1 - on / off, "fraction", source=SOURCE)
    for arm, line in found.fit.arms.items():
        claims.estimate(f"reference_slope_{arm}_ms_per_1k", line.slope, "ms/1k", SOURCE)
        claims.estimate(f"reference_intercept_{arm}_ms", line.intercept, "ms", SOURCE)
    for shown in found.printed:
        name, source = f"reference_printed_{{}}_{shown.arm}_ms", "as printed there"
        claims.add(name.format("intercept"), shown.intercept_ms, "ms", source=source)
        claims.add(f"{name.format('slope')}_per_1k", shown.slope_ms_per_1k, "ms/1k", source=source)
        claims.add(name.format("miss"), abs(shown.worst_ms), "ms", source=SOURCE)
    claims.estimate("reference_slope_reduction", found.fit.slope_reduction, "fraction", SOURCE)
    claims.estimate("reference_intercept_difference_ms", found.fit.intercept_difference, "ms", SOURCE)
    claims.add("reference_unit_tokens", round(found.tokens_per_unit), "tokens", source=SOURCE)
    claims.add("reference_fixed_tokens", round(found.fixed_tokens), "tokens", source=SOURCE)
    claims.add("reference_shortest_prefix_tokens", round(found.real_prefixes[0]), "tokens", source=SOURCE)
    claims.add("reference_longest_prefix_tokens", round(found.real_prefixes[-1]), "tokens", source=SOURCE)
    claims.add("reference_switch_reduction", found.switch_reduction, "fraction", source=SOURCE)
    claims.add("reference_switch_saved_ms", found.measured_switch_ms, "ms", source=SOURCE)
    claims.estimate("reference_switch_predicted_ms", found.predicted_switch_ms, "ms", SOURCE)
    claims.add("reference_tokens_saved", TOKENS_SAVED, "tokens", source="as printed there")
    claims.add("reference_system_tokens", SYSTEM_TOKENS, "tokens", source="as printed there")
    claims.add("reference_questions", QUESTIONS, "count", source="as printed there")
    claims.add("reference_cold_ceiling", (QUESTIONS - 1) / QUESTIONS, "fraction", source="(n - 1) / n")
    _claim_same_range(data, claims)
    ours = fitted(data)
    for arm in ("off", "on"):
        mine, theirs = ours.arms[arm].slope.value, found.fit.arms[arm].slope.value
        claims.add(f"reference_slope_ratio_{arm}", mine / theirs if mine is not None and theirs else None, "x",
                   source=f"{arm}: our slope over the refitted one")  # fmt: skip


@lru_cache(maxsize=8)
def same_range(data: Data) -> Fit | None:
    """Return our fit over prompts as long as the published ones; None where ours do not go beyond them."""
    theirs = [float(str(r["prompt_tokens"])) for r in _lengths()]
    low, high = min(theirs) * (1 - NEAR), max(theirs) * (1 + NEAR)
    probes = [r for name in ("off", "on") for r in data.probes(name, "length")]
    inside = [r for r in probes if low <= (r.get("prompt_tokens") or 0) <= high]
    if not any((r.get("prompt_tokens") or 0) > high for r in probes):
        return None
    return fit(inside)


def _claim_same_range(data: Data, claims: Claims) -> None:
    found = same_range(data)
    for arm in ("off", "on"):
        line = found.arms[arm] if found else None
        source = f"{arm}: length probes whose prompts are as long as the published ones"
        slope, level = (line.slope, line.intercept) if line else (Estimate(None), Estimate(None))
        claims.estimate(f"same_slope_{arm}_ms_per_1k", slope, "ms/1k", source)
        claims.estimate(f"same_intercept_{arm}_ms", level, "ms", source)
    reduction = found.slope_reduction if found else Estimate(None)
    claims.estimate("same_slope_reduction", reduction, "fraction", "length probes at the published lengths")


def rows() -> pd.DataFrame:
    """Return the published rows as points: series, prompt_tokens, ttft_ms."""
    return pd.DataFrame([
        {"series": arm, "prompt_tokens": r["prompt_tokens"], "ttft_ms": r[f"{arm}_ms"]}
        for r in _lengths()
        for arm in ("off", "on")
    ])  # fmt: skip


def _picture(ctx: Context) -> Picture | None:
    ours = points(ctx.data)
    if ours.empty:
        return None
    ours = ours[ours["series"].isin(["off", "on"])]
    end = max(float(ours["prompt_tokens"].max()), float(rows()["prompt_tokens"].max()))
    refit = pd.concat(
        pd.DataFrame({"series": arm, "prompt_tokens": b.tokens, "mean_ms": b.mean_ms, "low_ms": b.low_ms,
                      "high_ms": b.high_ms})
        for arm, line in published().fit.arms.items()
        if (b := line.band) is not None
    )  # fmt: skip
    return figures.beside(ours, bands(fitted(ctx.data)), rows(), refit, np.array([0.0, end]), ctx.words)


def _table(ctx: Context) -> Table | None:
    lines = []
    same = (("same", "same_"),) if ctx.has("same_slope_off_ms_per_1k") else ()
    for label, prefix in (("here", ""), *same, ("refit", "reference_"), ("printed", "reference_printed_")):
        names = [f"{prefix}{kind}_{arm}_{unit}" for arm in ("off", "on")
                 for kind, unit in (("slope", "ms_per_1k"), ("intercept", "ms"))]  # fmt: skip
        lines.append((ctx.words(f"reference.{label}"), *(ctx.ci(name) for name in names)))
    heads = ("line", "slope_off", "intercept_off", "slope_on", "intercept_on")
    return Table(heads, tuple(lines))


def _sentences(ctx: Context) -> str:
    if ctx.has("reference_slope_ratio_off", "reference_slope_ratio_on"):
        same = ctx.say("reference.at_same") if ctx.has("same_slope_reduction", "same_intercept_off_ms") else ""
        different = ctx.say("reference.different_same" if same else "reference.different")
        return joined(ctx.say("reference.compared"), same, different)
    return joined(ctx.say("reference.alone"))


def _box(ctx: Context) -> str:
    points = [ctx.say(f"reference.finding_{name}") for name in
              ("slopes", "intercepts", "lengths", "answers", "warm", "spread")]  # fmt: skip
    return ctx.say("reference.box") + "\n\n" + "\n".join(f"- {point}" for point in points)


SECTION = Section(claim, {"reference": _picture}, {"reference": _table}, {"reference": _sentences, "reanalysis": _box})
