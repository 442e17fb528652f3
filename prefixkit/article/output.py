"""What is left of the saving in a whole answer, and that decoding is the same with and without the cache."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import unpaired
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import output as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.ratio import mean_contrast, reduction
from prefixkit.stats.saving import OUTPUT_TOKENS, EndToEnd, Tpot, end_to_end, tpot, tpot_test

ARMS = ("off", "on")
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
    for row in answers(data, OUTPUT_TOKENS):
        n, source = row.output_tokens, f"off cold, on warm: switch TTFT + {row.output_tokens - 1} output tokens"
        claims.estimate(f"answer_{n}_off_ms", row.off_ms, "ms", source)
        claims.estimate(f"answer_{n}_on_ms", row.on_ms, "ms", source)
        claims.estimate(f"answer_{n}_reduction", row.reduction, "fraction", source)
        off, on = (measured(data, arm, n) for arm in ARMS)
        source = f"off, on: answers of {n} tokens behind the system prompt, e2e_ms"
        claims.estimate(f"answer_{n}_measured_saved_ms", unpaired(off, on), "ms", source)
        claims.estimate(f"answer_{n}_measured_reduction", share(off, on), "fraction", source)
        claims.estimate(f"answer_{n}_saved_ms", row.saved_ms, "ms", source)


def measured(data: Data, arm: str, tokens: int) -> list[float]:
    """Return the times of whole answers of so many tokens behind a system prompt that was cached (or never is)."""
    phase = "warm" if arm == "on" else "cold"
    rows = [*data.probes(arm, "outputs", phase), *data.probes(arm, "switch", phase)]
    return [float(r["e2e_ms"]) for r in rows if r.get("completion_tokens") == tokens and r.get("e2e_ms") is not None]


def share(off: list[float], on: list[float]) -> Estimate:
    """Return 1 - mean(on) / mean(off)."""
    a, b = (mean_contrast(np.array(values, dtype=float)) for values in (on, off))
    return Estimate(None) if a is None or b is None else reduction(a, b, n=len(off) + len(on))


def _points(data: Data) -> pd.DataFrame:
    rows = []
    for arm, phase in (("off", "cold"), ("on", "warm")):
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
    for n in OUTPUT_TOKENS:
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
    columns = ("off_ms", "on_ms", "saved_ms", "reduction", "measured_saved_ms")
    rows = tuple((f"{n:,}", *(ctx.ci(f"answer_{n}_{c}") for c in columns)) for n in OUTPUT_TOKENS)
    return Table(("output_tokens", "answer_off", "answer_on", "saved", "reduction", "measured_saved"), rows)


def _sentences(ctx: Context) -> str:
    if not ctx.has("tpot_off_ms", "tpot_on_ms"):
        return ctx.say("output.none")
    diluted = ctx.say("output.diluted") if ctx.has("answer_64_reduction") else ""
    return joined(ctx.say(f"output.{decoding(ctx.data).test.decision.replace(' ', '_')}"), diluted)


SECTION = Section(claim, {"output": _picture}, {"output": _table}, {"output": _sentences})
