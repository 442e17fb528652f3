"""API server against engine: cached prompts as chat and as token ids, and on servers with other settings."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.parts import parts
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import frontend as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.ratio import mean_contrast, reduction
from prefixkit.stats.regression import Contrast
from prefixkit.stats.ttft_parts import split_ttft

CHAT, TOKEN_IDS, SETTING = "chat", "token_ids", "setting_"
PARTS = ("engine", "before", "after")

Key = tuple[str, int, int]  # way, target tokens, requests at once


@lru_cache(maxsize=8)
def measured(data: Data) -> dict[Key, list[dict[str, float]]]:
    """Return the warm requests by way, length and concurrency: ttft, engine (with queue), before and after the headers.

    Token ids are taken alone only: the client writes 25,000 of them too slowly to send several at once.
    """
    found: dict[Key, list[dict[str, float]]] = defaultdict(list)
    cells: dict[Key, list[str]] = defaultdict(list)
    for r in [*data.probes("on", "frontend", "warm"), *data.probes("on", "tuning", "warm")]:
        condition, split = r["condition"], split_ttft(r)
        form, setting, at_once = condition["form"], condition.get("setting"), int(condition["concurrency"])
        if split is None or "api_server" not in split or (form == TOKEN_IDS and (setting or at_once > 1)):
            continue
        way = f"{SETTING}{setting}" if setting else form
        found[way, int(r["target_tokens"]), at_once].append({
            "tokens": float(r["prompt_tokens"]), "ttft": float(r["ttft_ms"]),
            "tokenize": float(condition["tokenize_ms"]), "engine": split["engine"] + split["queue"],
            "before": split["api_server"], "after": split["client_network"],
        })  # fmt: skip
        cells[way, int(r["target_tokens"]), at_once].append(str(r.get("cell")))
    return {key: _visits(rows, cells[key]) for key, rows in found.items()}


def _visits(rows: list[dict[str, float]], cells: list[str]) -> list[dict[str, float]]:
    """Return one row a visit: requests that were sent at once are not independent of each other."""
    frame = pd.DataFrame(rows).groupby(pd.Series(cells), sort=False).mean()
    return [{str(key): float(value) for key, value in row.items()} for row in frame.to_dict("records")]


def ways(data: Data) -> list[str]:
    """Return the ways in which cached prompts were sent: as chat, as token ids, then as chat with each setting."""
    return list(dict.fromkeys(way for way in (CHAT, TOKEN_IDS, *(k[0] for k in measured(data))) if _has(data, way)))


def _has(data: Data, way: str) -> bool:
    return any(key[0] == way for key in measured(data))


def lengths(data: Data) -> list[int]:
    """Return the prefix lengths."""
    return sorted({key[1] for key in measured(data)})


def together(data: Data) -> list[int]:
    """Return the numbers of requests at once."""
    return sorted({key[2] for key in measured(data)})


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each way at each length, and of what token ids and settings take away."""
    for (way, target, n), rows in sorted(measured(data).items()):
        name = f"frontend_{lengths(data).index(target) + 1}_{way}_{n}"
        source = f"on: frontend and tuning warm probes, {way}, {rows[0]['tokens']:.0f} tokens, {n} at once"
        for part in ("ttft", *PARTS):
            claims.estimate(f"{name}_{part}_ms", mean([r[part] for r in rows]), "ms", source)
    for index, target in enumerate(lengths(data), 1):
        rows = measured(data).get((CHAT, target, 1), [])
        tokens = rows[0]["tokens"] if rows else None
        claims.add(f"frontend_{index}_tokens", tokens, "tokens", source="on: frontend warm probes, prompt_tokens")
        claims.estimate(f"frontend_{index}_tokenize_ms", mean([r["tokenize"] for r in rows]), "ms",
                        "on: frontend warm probes, tokenize_ms")  # fmt: skip
    last = lengths(data)[-1] if lengths(data) else 0
    rows = measured(data).get((CHAT, last, 1), [])
    claims.add("frontend_tokens", rows[0]["tokens"] if rows else None, "tokens", source="on: frontend, longest prompt")
    claims.add("frontend_together", together(data)[-1] if together(data) else None, "count", source="on: frontend")
    for way in ("chat", *(w for w in ways(data) if w != CHAT)):
        for part, name in (("ttft", "ttft"), ("outside", "outside")):
            claims.estimate(f"frontend_{way}_{name}_reduction", _less(data, way, last, part), "fraction",
                            f"on: frontend and tuning, longest prompt alone, 1 - {way} / chat, {name}")  # fmt: skip
    claims.estimate("engine_slope_reduction", _engine_slopes(data), "fraction",
                    "off: length cold, on: length warm; 1 - slope of the engine's part on / off")  # fmt: skip


def _less(data: Data, way: str, target: int, part: str) -> Estimate:
    """Return what share of chat's time at one length this way takes away."""
    sides = []
    for name in (way, CHAT):
        rows = measured(data).get((name, target, 1), [])
        values = [r["ttft"] - (r["engine"] if part == "outside" else 0.0) for r in rows]
        sides.append(mean_contrast(np.array(values)) if values else None)
    if way == CHAT or sides[0] is None or sides[1] is None:
        return Estimate(None)
    return reduction(sides[0], sides[1], n=2)


def _engine_slopes(data: Data) -> Estimate:
    """Return how far the engine's slope falls; half widths of both slopes are taken as those of normal estimates."""
    sides = []
    for arm in ("on", "off"):
        slope = parts(data)[arm].slopes.get("engine", Estimate(None))
        if slope.value is None or slope.half_width is None:
            return Estimate(None)
        sides.append(Contrast(slope.value, (slope.half_width / 1.96) ** 2, 1e6))
    return reduction(sides[0], sides[1], n=parts(data)["on"].n + parts(data)["off"].n)


def label(ctx: Context, way: str) -> str:
    """Return what a way is called."""
    if way.startswith(SETTING):
        return ctx.say("frontend.with_setting", setting=way.removeprefix(SETTING))
    return ctx.words(f"frontend.{way}")


def _picture(ctx: Context) -> Picture | None:
    if not lengths(ctx.data):
        return None
    last = len(lengths(ctx.data))
    rows = [
        {"way": label(ctx, way), "together": n,
         **{part: ctx.number(f"frontend_{last}_{way}_{n}_{part}_ms") for part in ("ttft", *PARTS)}}
        for n in (together(ctx.data)[0], together(ctx.data)[-1])[: len(together(ctx.data))]
        for way in ways(ctx.data)
        if ctx.has(f"frontend_{last}_{way}_{n}_ttft_ms")
    ]  # fmt: skip
    return figures.bars(pd.DataFrame(rows), PARTS, ctx.words)


def _table(ctx: Context) -> Table | None:
    rows = [
        (ctx.cell(f"frontend_{i}_tokens"), str(n), label(ctx, way),
         *(ctx.ci(f"frontend_{i}_{way}_{n}_{part}_ms") for part in ("ttft", *PARTS)))
        for i in range(1, len(lengths(ctx.data)) + 1)
        for n in together(ctx.data)
        for way in ways(ctx.data)
        if ctx.has(f"frontend_{i}_{way}_{n}_ttft_ms")
    ]  # fmt: skip
    heads = ("prompt_tokens", "at_once", "way", "ttft", "part_engine", "part_before", "part_after")
    return Table(heads, tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    engine = ctx.say("frontend.engine") if ctx.has("engine_slope_reduction", "slope_reduction") else ""
    last = len(lengths(ctx.data))
    if not ctx.has(f"frontend_{last}_{CHAT}_1_ttft_ms"):
        return joined(engine, ctx.say("frontend.none"))
    said = [engine, _shown(ctx, last)]
    if ctx.has("frontend_token_ids_outside_reduction"):
        said += [ctx.say("frontend.ids", **_named(ctx, last, TOKEN_IDS, 1)), _also_off(ctx, last)]
    for way in ways(ctx.data):
        if way.startswith(SETTING):
            key = "frontend.setting" if ctx.has(f"frontend_{last}_{way}_1_ttft_ms") else "frontend.unmeasured"
            said.append(ctx.say(key, setting=way.removeprefix(SETTING), **_named(ctx, last, way, 1)))
    return joined(*said, _together(ctx, last))


def _also_off(ctx: Context, last: int) -> str:
    """Say what lies behind the headers where nothing is looked up."""
    tokens = ctx.number(f"frontend_{last}_tokens")
    for index, row in enumerate(parts(ctx.data)["off"].by_length, 1):
        if tokens and abs(row.tokens - tokens) < 0.005 * tokens:
            return ctx.say("frontend.also_off", after=ctx.ci(f"part_off_{index}_client_network_ms"))
    return ""


def _together(ctx: Context, last: int) -> str:
    most = together(ctx.data)[-1]
    if most == 1 or not ctx.has(f"frontend_{last}_{CHAT}_{most}_ttft_ms"):
        return ""
    said = [ctx.say("frontend.together", n=str(most), **_named(ctx, last, CHAT, most))]
    for way in ways(ctx.data):
        if way.startswith(SETTING) and ctx.has(f"frontend_{last}_{way}_{most}_ttft_ms"):
            named = _named(ctx, last, way, most)
            said.append(ctx.say("frontend.setting_together", setting=way.removeprefix(SETTING), **named))
    return joined(*said)


def _shown(ctx: Context, last: int) -> str:
    took = ctx.say("frontend.took", ms=ctx.ci(f"frontend_{last}_tokenize_ms"))
    return ctx.say("frontend.shown", tokenize=took, **_named(ctx, last, CHAT, 1))


def _named(ctx: Context, index: int, way: str, n: int) -> dict[str, str]:
    return {part: ctx.cell(f"frontend_{index}_{way}_{n}_{part}_ms") for part in ("ttft", *PARTS)}


SECTION = Section(claim, {"frontend": _picture}, {"frontend": _table}, {"frontend": _sentences})
