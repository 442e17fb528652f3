"""Block size by KV capacity: hits, tokens lost at the tail, TTFT, and the setting to take."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import blocks as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.block_sizes import Setting, recommend, settings

NAME = "blocks"


def found(data: Data) -> list[Setting]:
    """Return the measured settings of arm on."""
    if not data.probes("on", NAME):
        return []
    return settings(data.arm("on").records)


def best(data: Data) -> Setting | None:
    """Return the setting to take, or None where none was measured."""
    measured = found(data)
    if not measured:
        return None
    return recommend(measured)


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each setting and of the recommended one."""
    for index, row in enumerate(found(data), 1):
        source = f"on: blocks, block size {row.block_size}, capacity {row.capacity_tokens}"
        claims.add(f"blocks_{index}_block_size", row.block_size, "tokens", source=source)
        claims.add(f"blocks_{index}_capacity_tokens", row.capacity_tokens, "tokens", source=source)
        claims.add(f"blocks_{index}_hit_rate", row.hit_rate, "fraction", source=source)
        claims.add(f"blocks_{index}_predicted", row.predicted_rate, "fraction", source=source)
        claims.add(f"blocks_{index}_tail_tokens", row.tail_tokens, "tokens", source=source)
        claims.add(f"blocks_{index}_ttft_ms", row.ttft_ms, "ms", source=f"{source}, median ttft_ms")
    chosen = best(data)
    source = "on: blocks, lowest median TTFT; within 5 % the smallest capacity"
    claims.add("blocks_recommended_block_size", chosen.block_size if chosen else None, "tokens", source=source)
    claims.add(
        "blocks_recommended_capacity_tokens", chosen.capacity_tokens if chosen else None, "tokens", source=source
    )


def _picture(ctx: Context) -> Picture | None:
    rows = [
        {"block_size": int(c["block_size"]), "capacity_tokens": int(c["capacity_tokens"]),
         "ttft_ms": float(r["ttft_ms"]),
         "cached_share": None if r.get("cached_tokens") is None else r["cached_tokens"] / r["prompt_tokens"]}
        for r in ctx.data.probes("on", NAME, "warm")
        if (c := r.get("condition") or {}).get("block_size") and c.get("capacity_tokens") and r.get("prompt_tokens")
    ]  # fmt: skip
    return figures.grid(pd.DataFrame(rows), ctx.words) if rows else None


def _table(ctx: Context) -> Table | None:
    columns = ("block_size", "capacity_tokens", "hit_rate", "predicted", "tail_tokens", "ttft_ms")
    rows = [tuple(ctx.cell(f"blocks_{i}_{c}") for c in columns) for i in range(1, len(found(ctx.data)) + 1)]
    heads = ("block_size", "capacity", "hit_rate", "predicted_rate", "tail_tokens", "ttft_p50")
    return Table(heads, tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("blocks_recommended_block_size"):
        return ctx.say("blocks.none")
    return joined(ctx.say("blocks.intro"), ctx.say("blocks.recommended"))


SECTION = Section(claim, {"blocks": _picture}, {"blocks": _table}, {"blocks": _sentences})
