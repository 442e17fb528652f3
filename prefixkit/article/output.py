"""What is left of the saving in a whole answer, and that decoding is the same with and without the cache."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import output as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.saving import OUTPUT_TOKENS, EndToEnd, Tpot, end_to_end, tpot, tpot_test

SIDES = (("off", "cold"), ("on", "warm"))
CURVE = tuple(int(n) for n in np.unique(np.geomspace(1, 1024, 40).round()))


@lru_cache(maxsize=8)
def decoding(data: Data) -> Tpot:
    """Return the time per output token of both arms and its test."""
    return tpot_test(data.records, margin=data.settings.control_margin)


@lru_cache(maxsize=8)
def answers(data: Data, lengths: tuple[int, ...]) -> tuple[EndToEnd, ...]:
    """Return what is saved of whole answers of these lengths."""
    return end_to_end(data.records, output_tokens=lengths)


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of time per output token and of the dilution."""
    found = decoding(data)
    source = "switch probes, (e2e_ms - ttft_ms) / (completion_tokens - 1)"
    claims.estimate("tpot_off_ms", found.off, "ms", f"off: {source}")
    claims.estimate("tpot_on_ms", found.on, "ms", f"on: {source}")
    claims.estimate("tpot_difference_ms", found.test.difference, "ms", f"off, on: {source}; on - off")
    claims.estimate("tpot_difference_share", found.test.relative, "fraction", f"off, on: {source}; on / off - 1")
    claims.add("tpot_verdict", found.test.decision, "text", source=f"off, on: {source}; two one-sided tests, 5 %")
    rows = answers(data, lengths(data))
    claims.add("answer_requests", rows[0].saved_ms.n or None, "count", source="off cold, on warm: switch ttft_ms")
    for row in rows:
        n, source = row.output_tokens, f"off cold, on warm: switch TTFT + {row.output_tokens - 1} output tokens"
        claims.estimate(f"answer_{n}_off_ms", row.off_ms, "ms", source)
        claims.estimate(f"answer_{n}_on_ms", row.on_ms, "ms", source)
        claims.estimate(f"answer_{n}_reduction", row.reduction, "fraction", source)
        claims.estimate(f"answer_{n}_saved_ms", row.saved_ms, "ms", source)
        source = f"off cold, on warm: outputs and switch answers of {n} tokens, e2e_ms, pairs of the same question"
        claims.estimate(f"answer_{n}_measured_saved_ms", row.measured_ms, "ms", f"{source}, off - on")
        claims.estimate(f"answer_{n}_measured_reduction", row.measured_reduction, "fraction", f"{source}, 1 - on / off")
        claims.add(f"answer_{n}_measured_n", row.measured_ms.n or None, "count", source=source)


@lru_cache(maxsize=8)
def lengths(data: Data) -> tuple[int, ...]:
    """Return the answer lengths to tell of: the usual ones, and those that both arms were asked for."""
    off, on = ({r.get("completion_tokens") for r in data.probes(arm, "outputs", phase)} for arm, phase in SIDES)
    return tuple(sorted({*OUTPUT_TOKENS, *(int(n) for n in off & on if n)}))


def _points(data: Data) -> pd.DataFrame:
    rows = []
    for arm, phase in SIDES:
        for r in data.probes(arm, "switch", phase):
            if (value := tpot(r)) is not None:
                rows.append({"arm": arm, "tpot_ms": value, "tokens": int(r["completion_tokens"])})
    return pd.DataFrame(rows, columns=["arm", "tpot_ms", "tokens"])


def _picture(ctx: Context) -> Picture | None:
    points = _points(ctx.data)
    found = [(row.output_tokens, row.reduction) for row in answers(ctx.data, CURVE) if row.reduction.value is not None]
    if points.empty or not found:
        return None
    curve = pd.DataFrame([_row(n, e) for n, e in found])
    seen = []
    for n in lengths(ctx.data):
        claim = ctx.claims[f"answer_{n}_measured_reduction"]
        if claim.value is not None:
            seen.append(_row(n, Estimate(ctx.number(claim.name), *(claim.ci or ()))))
    return figures.dilution(curve, pd.DataFrame(seen, columns=["tokens", "share", "low", "high"]), points, ctx.words)


def _row(tokens: int, found: Estimate) -> dict[str, float]:
    low, high = found.ci or (np.nan, np.nan)
    return {"tokens": tokens, "share": np.nan if found.value is None else found.value, "low": low, "high": high}


def _table(ctx: Context) -> Table | None:
    if not ctx.has("answer_1_off_ms"):
        return None
    rows = tuple(
        (
            f"{n:,}",
            *(ctx.cell(f"answer_{n}_{c}") for c in ("off_ms", "on_ms")),
            *(ctx.ci(f"answer_{n}_{c}") for c in ("saved_ms", "measured_saved_ms", "reduction", "measured_reduction")),
            ctx.cell(f"answer_{n}_measured_n"),
        )
        for n in lengths(ctx.data)
    )
    heads = ("output_tokens", "answer_off", "answer_on", "predicted_saved", "measured_saved", "predicted_reduction",
             "measured_reduction", "n")  # fmt: skip
    return Table(heads, rows).without_empty()


def _sentences(ctx: Context) -> str:
    if not ctx.has("tpot_off_ms", "tpot_on_ms"):
        return ctx.say("output.none")
    diluted = ctx.say("output.diluted") if ctx.has("answer_64_reduction") else ""
    test = decoding(ctx.data).test.decision.replace(" ", "_")
    return joined(ctx.say(f"output.{test}"), diluted, *_measured(ctx))


def _measured(ctx: Context) -> list[str]:
    """Say what whole answers were measured beside the prediction, and how to have the others."""
    seen = [n for n in lengths(ctx.data) if ctx.has(f"answer_{n}_measured_reduction")]
    lacking = [n for n in lengths(ctx.data) if n > 1 and n not in seen]
    said = []
    if seen:
        each = [
            ctx.say(
                "output.measured_one",
                tokens=f"{n:,}",
                reduction=_with_interval(ctx, f"answer_{n}_measured_reduction"),
                n=ctx.cell(f"answer_{n}_measured_n"),
            )
            for n in seen
        ]
        said.append(ctx.say("output.measured", each="; ".join(each)))
    if lacking:
        said.append(ctx.say("output.unmeasured", lengths=", ".join(map(str, lacking))))
    return said


def _with_interval(ctx: Context, name: str) -> str:
    return ctx.ci(name) if ctx.claims[name].ci else f"{ctx.cell(name)} ({ctx.words('output.no_interval')})"


SECTION = Section(claim, {"output": _picture}, {"output": _table}, {"output": _sentences})
