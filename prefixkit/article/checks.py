"""What is checked beside the two lines: one model of both arms, steps at borders, and why nothing was gained."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from prefixkit.article.data import Data
from prefixkit.article.length import fitted
from prefixkit.article.section import Context, Section, joined
from prefixkit.claims import Claims
from prefixkit.stats import Estimate, Pooled, pooled, server_steps, steps, why_no_gain
from prefixkit.stats.line import PER_1K

STEPS = {"chunk": "chunk_step_ms", "block": "block_step_ms_per_token"}


@lru_cache(maxsize=8)
def model(data: Data) -> Pooled:
    """Return the regression over both arms."""
    found = fitted(data)
    return pooled(found.on, found.off)


@lru_cache(maxsize=8)
def borders(data: Data) -> dict[str, Estimate]:
    """Return both steps; on a line that curves a step cannot be told from the curve."""
    found = fitted(data)
    chunk, block = server_steps(data.records)
    both = steps(found.off, found.on, chunk_tokens=chunk, block_size=block)
    curved = {name: line.intercept.status == "curvature" for name, line in found.arms.items()}
    return {
        "chunk": Estimate(None) if curved["off"] else both.chunk,
        "block": Estimate(None) if curved["on"] else both.block,
    }


@lru_cache(maxsize=8)
def nothing_gained(data: Data) -> Estimate | None:
    """Return off minus on where even the longest prompt shows no saving; None where it does, or nothing is known."""
    rows = fitted(data).by_length
    found = why_no_gain(fitted(data))
    helps = not rows or (rows[-1].saved_ms.low or 0) > 0
    return None if helps or found.value is None or found.status == "ok" else found


def expected_ms(data: Data) -> float | None:
    """Return what the off slope predicts for the tokens that warm requests found, on average."""
    rows, slope = fitted(data).on.rows, fitted(data).off.slope.value
    if rows is None or slope is None or np.isnan(rows.cached).all():
        return None
    return slope / PER_1K * float(np.nanmean(rows.cached))


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the checks."""
    both, source = model(data), "off cold, on warm: length, ttft_ms ~ prompt_tokens + arm + arm x prompt_tokens"
    claims.estimate("pooled_slope_on_minus_off_ms_per_1k", both.slope_on_minus_off, "ms/1k", f"{source}: interaction")
    claims.estimate("pooled_on_minus_off_ms", both.on_minus_off_ms, "ms", f"{source}: arm, at 0 tokens")
    claims.add("pooled_r2", both.r2, "p", source=source)
    claims.add("prefill_chunk_tokens", server_steps(data.records)[0], "tokens", source="params: max_num_batched_tokens")
    found = borders(data)
    claims.estimate(STEPS["chunk"], found["chunk"], "ms", "off: length cold, chunks of prefill beside the line")
    claims.estimate(STEPS["block"], found["block"], "ms", "on: length warm, tokens behind the last full block")
    nothing = nothing_gained(data)
    source = "off, on: length, mean over the lengths of both arms"
    claims.estimate("no_gain_saved_ms", nothing or Estimate(None), "ms", f"{source}, off - on")
    claims.add("no_gain_expected_ms", expected_ms(data) if nothing else None, "ms",
               source="slope_off x mean cached_tokens of warm requests")  # fmt: skip


def _steps(ctx: Context) -> list[str]:
    said, untold = [], []
    for name, found in borders(ctx.data).items():
        if found.ci is None:
            untold.append(ctx.words(f"checks.{name}"))
        else:
            said.append(ctx.say(f"checks.{name}_{'seen' if found.excludes(0) else 'unclear'}"))
    if untold:
        said.append(ctx.say("checks.untold", names=untold[0] if len(untold) == 1 else ctx.words("checks.both")))
    return said


def _no_gain(ctx: Context) -> str:
    found, expected = nothing_gained(ctx.data), ctx.number("no_gain_expected_ms")
    if found is None:
        return ""
    if found.status == "slower":
        return ctx.say("checks.slower")
    if expected is None:
        return ctx.say("checks.unexplained")
    if not expected:
        return ctx.say("checks.unfound")
    return ctx.say("checks.short" if abs(expected) < (found.half_width or 0.0) else "checks.hidden")


def _sentences(ctx: Context) -> str:
    if not ctx.has("pooled_slope_on_minus_off_ms_per_1k"):
        return _no_gain(ctx)
    return joined(_no_gain(ctx), ctx.say("checks.pooled"), *_steps(ctx))


SECTION = Section(claim, sentences={"checks": _sentences})
