"""Where a TTFT goes: client and network, API server, queue, engine; and which part makes the residual slope."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import parts as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.ttft_parts import PARTS, UNSPLIT, TtftParts, ttft_parts

SERIES = {"off": ("off", "cold"), "on": ("on", "warm")}
NAMES = (*PARTS, "outside")


@lru_cache(maxsize=8)
def parts(data: Data) -> dict[str, TtftParts]:
    """Return the parts of both arms."""
    return {name: ttft_parts(data.records, *key) for name, key in SERIES.items()}


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the parts, by length and as slopes."""
    total = 0
    for name, found in parts(data).items():
        arm, phase = SERIES[name]
        total += found.n
        source = f"{arm}: length {phase} probes, server and timings"
        for index, row in enumerate(found.by_length, 1):
            claims.add(f"part_{name}_{index}_tokens", row.tokens, "tokens", source=source)
            for part, estimate in row.parts.items():
                claims.estimate(f"part_{name}_{index}_{part}_ms", estimate, "ms", f"{source}, {row.tokens:.0f} tokens")
        for part in (*NAMES, "total"):
            claims.estimate(f"part_{name}_{part}_slope_ms_per_1k", found.slopes.get(part, Estimate(None)), "ms/1k",
                            f"{source}, {part} against prompt_tokens")  # fmt: skip
    claims.add("parts_n", total or None, "count", source="off, on: length probes that carry the server's own times")


def used(data: Data) -> tuple[str, ...]:
    """Return the parts that could be told apart in both arms."""
    found = [p for p in parts(data).values() if p.n]
    return PARTS if found and all("api_server" in p.by_length[0].parts for p in found) else UNSPLIT


def _picture(ctx: Context) -> Picture | None:
    rows = [
        {"series": name, "prompt_tokens": round(row.tokens), "ttft_ms": row.ttft_ms.value,
         **{part: _value(row.parts, part) for part in used(ctx.data)}}
        for name, found in parts(ctx.data).items()
        for row in found.by_length
    ]  # fmt: skip
    return figures.stacked(pd.DataFrame(rows), used(ctx.data), ctx.words) if rows else None


def _value(found: dict[str, Estimate], part: str) -> float:
    if part in found:
        return found[part].value or 0.0
    return sum(found[name].value or 0.0 for name in ("api_server", "client_network") if name in found)


def _table(ctx: Context) -> Table | None:
    names = used(ctx.data)
    cells = [
        (
            ctx.words.arm(name),
            ctx.cell(f"part_{name}_{i}_tokens"),
            *(ctx.ci(f"part_{name}_{i}_{part}_ms") for part in names),
        )
        for name, found in parts(ctx.data).items()
        for i in range(1, len(found.by_length) + 1)
    ]
    return Table(("arm", "prompt_tokens", *(f"part_{part}" for part in names)), tuple(cells)) if cells else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("parts_n"):
        return ctx.say("parts.none")
    most = parts(ctx.data)["on"].largest_slope
    if most is None:
        return ctx.say("parts.shown")
    slope = ctx.say("parts.slope", n=ctx.ci(f"part_on_{most}_slope_ms_per_1k"))
    return joined(ctx.say("parts.shown"), ctx.say("parts.residual", part=ctx.words(f"part.{most}"), slope=slope))


SECTION = Section(claim, {"parts": _picture}, {"parts": _table}, {"parts": _sentences})
