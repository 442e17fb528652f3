"""The ceiling and the cost of a token: what could be saved, what was, and what that means for other prompts."""

from __future__ import annotations

from functools import lru_cache

from prefixkit.article.data import Data
from prefixkit.article.length import fitted
from prefixkit.article.output import decoding
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.stats.attribution import Attribution, attribution
from prefixkit.stats.ceiling import Ceiling, ceiling
from prefixkit.stats.cost import worth
from prefixkit.stats.estimate import Estimate

EXAMPLES = {
    "short": {"system": 40, "history": 0, "question": 30, "output": 64},
    "chat": {"system": 800, "history": 2000, "question": 30, "output": 64},
    "documents": {"system": 2500, "history": 0, "question": 60, "output": 128},
    "agent": {"system": 1500, "history": 1200, "question": 200, "output": 32},
}


@lru_cache(maxsize=8)
def costs(data: Data) -> Attribution:
    """Return what an uncached and a cached token cost."""
    return attribution(data.records)


@lru_cache(maxsize=8)
def ceilings(data: Data) -> tuple[Ceiling, ...]:
    """Return predicted and measured saving by length."""
    return ceiling(fitted(data))


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the ceiling, of the cost of a token, and of the example prompts."""
    found, source = costs(data), "off, on: length probes, ttft_ms against uncached and cached tokens"
    claims.estimate("uncached_token_ms_per_1k", found.uncached, "ms/1k", source)
    claims.estimate("cached_token_ms_per_1k", found.cached, "ms/1k", source)
    claims.estimate("attention_ms_per_million_pairs", found.attention, "ms", f"{source} and pairs of tokens, millions")
    claims.estimate("cached_token_share", found.cached_share, "fraction", source)
    for index, row in enumerate(ceilings(data), 1):
        here = f"off, on: length, {row.tokens:.0f} tokens"
        claims.add(f"ceiling_{index}_tokens", row.tokens, "tokens", source=here)
        claims.add(f"ceiling_{index}_cached_tokens", row.cached_tokens, "tokens", source=here)
        claims.estimate(f"ceiling_{index}_predicted_ms", row.predicted_ms, "ms", f"{here}: slope_off x cached tokens")
        claims.estimate(f"ceiling_{index}_measured_ms", row.measured_ms, "ms", f"{here}: off - on")
        claims.estimate(f"ceiling_{index}_shortfall_ms", row.shortfall_ms, "ms", f"{here}: predicted - measured")
        # A line that curves can meet the axis below zero, where it bounds nothing.
        bound = row.bound if row.bound.value is not None and row.bound.value <= 1 else Estimate(None)
        claims.estimate(f"ceiling_{index}_bound", bound, "fraction", f"{here}: 1 - intercept_off / TTFT_off")
    _examples(data, claims)


def _examples(data: Data, claims: Claims) -> None:
    block = int(claims.number("block_size") or 16)
    for name, prompt in EXAMPLES.items():
        found = worth(costs(data), **prompt, block=block, tpot_ms=decoding(data).off)
        source = f"off, on: length fit of uncached and cached tokens, {prompt}"
        for part, tokens in prompt.items():
            claims.add(f"example_{name}_{part}_tokens", tokens, "tokens", source="chosen for illustration")
        claims.add(f"example_{name}_cached_tokens", found.cached_tokens, "tokens", source=source)
        claims.estimate(f"example_{name}_off_ms", found.off_ms, "ms", source)
        claims.estimate(f"example_{name}_on_ms", found.on_ms, "ms", source)
        claims.estimate(f"example_{name}_saved_ms", found.saved_ms, "ms", source)
        claims.estimate(f"example_{name}_ttft_reduction", found.ttft_reduction, "fraction", source)
        claims.estimate(f"example_{name}_answer_reduction", found.answer_reduction, "fraction", source)
        claims.add(f"example_{name}_status", found.saved_ms.status, "text", source=source)


def _table(ctx: Context) -> Table | None:
    columns = ("tokens", "cached_tokens")
    rows = [
        (*(ctx.cell(f"ceiling_{i}_{c}") for c in columns),
         *(ctx.ci(f"ceiling_{i}_{c}") for c in ("predicted_ms", "measured_ms", "shortfall_ms", "bound")))
        for i in range(1, len(ceilings(ctx.data)) + 1)
    ]  # fmt: skip
    heads = ("prompt_tokens", "cached_tokens", "predicted_saving", "measured_saving", "shortfall", "bound")
    return Table(heads, tuple(rows)).without_empty() if rows else None


def _example_table(ctx: Context) -> Table | None:
    if not ctx.has("uncached_token_ms_per_1k"):
        return None
    rows = []
    for name in EXAMPLES:
        tokens = (ctx.cell(f"example_{name}_{part}_tokens") for part in ("system", "history", "question", "output"))
        found = (ctx.ci(f"example_{name}_{c}") for c in ("saved_ms", "ttft_reduction", "answer_reduction"))
        label = ctx.words(f"example.{name}")
        outside = ctx.claims[f"example_{name}_status"].value == "extrapolated"
        rows.append((f"{label} {ctx.words('example.extrapolated')}" if outside else label, *tokens, *found))
    tokens_heads = ("system_tokens", "history_tokens", "question_tokens", "output_tokens")
    return Table(("example", *tokens_heads, "saved", "ttft_reduction", "answer_reduction"), tuple(rows))


def _sentences(ctx: Context) -> str:
    if not ceilings(ctx.data):
        return ctx.say("ceiling.none")
    bounded = any(ctx.has(f"ceiling_{i}_bound") for i in range(1, len(ceilings(ctx.data)) + 1))
    clear = costs(ctx.data).cached.excludes(0)
    key = "no_cost" if not ctx.has("cached_token_ms_per_1k") else "cost" if clear else "cost_unclear"
    ending = "_curved" if fitted(ctx.data).off.intercept.status == "curvature" else ""
    bound = ctx.say(f"ceiling.bounded{ending}" if bounded else "ceiling.unbounded")
    curved = ctx.say("ceiling.attention") if ctx.has("attention_ms_per_million_pairs") else ""
    return joined(ctx.say("ceiling.intro"), bound, ctx.say(f"ceiling.{key}"), curved)


def _example_sentences(ctx: Context) -> str:
    return ctx.say("example.intro") if ctx.has("uncached_token_ms_per_1k") else ""


SECTION = Section(
    claim,
    tables={"ceiling": _table, "examples": _example_table},
    sentences={"ceiling": _sentences, "examples": _example_sentences},
)
