"""The user's own prompts, replayed: hits, saved tokens and time, what is shared and what breaks it."""

from __future__ import annotations

from typing import Any

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import difference, mean, ratio_of_means
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import workload as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record, probes
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.quantiles import quantile

NAME = "workload"
SHOWN = 160


def analysis(data: Data) -> Record:
    """Return the last arithmetic over the whole file, or an empty record."""
    found = data.arm("on").of(NAME)
    return found[-1] if found else {}


def pairs(data: Data) -> pd.DataFrame:
    """Return each request answered in both arms: request, prompt_tokens, cached_tokens, off_ms, on_ms, saved_ms."""
    sides: dict[str, dict[Any, Record]] = {
        arm: {
            ((r.get("condition") or {}).get("workload"), r["condition"].get("request")): r
            for r in data.probes(arm, NAME)
        }
        for arm in ("off", "on")
    }
    rows = [
        {"request": key[1], "prompt_tokens": on.get("prompt_tokens"), "cached_tokens": on.get("cached_tokens"),
         "off_ms": float(sides["off"][key]["ttft_ms"]), "on_ms": float(on["ttft_ms"]),
         "saved_ms": float(sides["off"][key]["ttft_ms"]) - float(on["ttft_ms"])}
        for key, on in sides["on"].items()
        if key in sides["off"]
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["request", "prompt_tokens", "cached_tokens", "off_ms", "on_ms", "saved_ms"])


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the replay and of the arithmetic."""
    on, both, file = data.probes("on", NAME), pairs(data), analysis(data)
    claims.add("workload_n", len(on) or None, "count", source="on: workload probes answered")
    long = [r for r in probes(data.arm("on").records, NAME) if (r.get("error") or {}).get("kind") == "too-long"]
    claims.add("workload_too_long", len(long), "count", source="on: workload probes with error too-long")
    known = [(int(r["cached_tokens"]), int(r["prompt_tokens"])) for r in on
             if r.get("cached_tokens") is not None and r.get("prompt_tokens")]  # fmt: skip
    prompt, cached = sum(p for _, p in known), sum(c for c, _ in known)
    claims.add(
        "workload_hit_rate",
        cached / prompt if prompt else None,
        "fraction",
        source="on: workload, cached / prompt tokens",
    )
    claims.add(
        "workload_saved_tokens", cached if known else None, "tokens", source="on: workload, sum of cached_tokens"
    )
    side = [(float(a), float(b)) for a, b in zip(both["off_ms"], both["on_ms"], strict=True)]
    source = "off, on: workload, ttft_ms paired by request"
    claims.estimate("workload_saved_ms", difference(side), "ms", f"{source}, mean")
    claims.estimate("workload_reduction", ratio_of_means(side), "fraction", source)
    for arm, column in (("off", "off_ms"), ("on", "on_ms")):
        claims.estimate(f"workload_{arm}_ms", mean(list(both[column])), "ms", f"{arm}: workload, ttft_ms, mean")
    for q in (10, 50, 90):
        found = quantile(list(both["saved_ms"]), q / 100) if len(both) else Estimate(None)
        claims.estimate(f"workload_saved_p{q}_ms", found, "ms", f"{source}, p{q} of the saving")
    _arithmetic(file, claims)


def _arithmetic(file: Record, claims: Claims) -> None:
    source = "on: workload record, block arithmetic over the file"
    total, moved = file.get("prompt_tokens"), file.get("moved_prompt_tokens")
    claims.add("workload_prompt_tokens", total, "tokens", source=source)
    for name, hits, whole in (
        ("hit_rate_predicted", "hits", total), ("hit_rate_ideal", "ideal_hits", total),
        ("hit_rate_moved", "moved_hits", moved), ("hit_rate_moved_ideal", "moved_ideal_hits", moved),
    ):  # fmt: skip
        claims.add(f"workload_{name}", file[hits] / whole if whole else None, "fraction", source=source)
    claims.add("workload_moved_requests", file.get("moved_requests"), "count", source=source)
    for index, prefix in enumerate(file.get("prefixes") or [], 1):
        for key, unit in (
            ("tokens", "tokens"),
            ("own_tokens", "tokens"),
            ("requests", "count"),
            ("saved_tokens", "tokens"),
        ):
            claims.add(f"workload_prefix_{index}_{key}", prefix.get(key), unit, source=source)
    for index, found in enumerate(file.get("breaks") or [], 1):
        for key, unit in (("requests", "count"), ("tokens_after", "tokens"), ("first_token", "tokens")):
            claims.add(f"workload_break_{index}_{key}", found.get(key), unit, source=source)


def _picture(ctx: Context) -> Picture | None:
    both = pairs(ctx.data)
    return figures.savings(both, ctx.words) if len(both) > 1 else None


def _prefixes(ctx: Context) -> Table | None:
    rows = [
        (str(i), *(ctx.cell(f"workload_prefix_{i}_{c}") for c in ("tokens", "own_tokens", "requests", "saved_tokens")),
         str(prefix.get("line")))
        for i, prefix in enumerate(analysis(ctx.data).get("prefixes") or [], 1)
    ]  # fmt: skip
    return (
        Table(("rank", "prefix_tokens", "own_tokens", "requests", "saved_tokens", "line_number"), tuple(rows))
        if rows
        else None
    )


def _breaks(ctx: Context) -> Table | None:
    rows = []
    for i, found in enumerate(analysis(ctx.data).get("breaks") or [], 1):
        kind = ctx.words.entries.get(f"break.{found.get('kind')}", str(found.get("kind")))
        where = ctx.words.say("workload.where", role=str(found.get("role")), n=str(int(found.get("message") or 0) + 1))
        text = f"{found.get('text')} | {found.get('other_text')}"[:SHOWN] if found.get("text") is not None else ""
        texts = (text,) if ctx.data.settings.show_prompts else ()
        counts = (ctx.cell(f"workload_break_{i}_{c}") for c in ("requests", "tokens_after", "first_token"))
        rows.append((where, kind, *counts, f"{found.get('line')}, {found.get('other_line')}", *texts))
    heads = ("where", "kind", "requests", "tokens_after", "first_token", "line_numbers")
    shown = ("texts",) if ctx.data.settings.show_prompts else ()
    return Table((*heads, *shown), tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("workload_n"):
        return ctx.say("workload.none")
    saved = ctx.claims["workload_saved_ms"].ci
    key = "one_arm" if not ctx.has("workload_saved_ms") else "helped" if saved and saved[0] > 0 else "unclear"
    return joined(
        ctx.say("workload.hits") if ctx.has("workload_hit_rate") else "",
        ctx.say(f"workload.{key}"),
        ctx.say("workload.arithmetic") if ctx.has("workload_hit_rate_ideal", "workload_hit_rate_predicted") else "",
        ctx.say("workload.moved") if ctx.number("workload_moved_requests") else "",
        ctx.say("workload.long") if ctx.number("workload_too_long") else "",
    )


SECTION = Section(claim, {"workload": _picture}, {"prefixes": _prefixes, "breaks": _breaks}, {"workload": _sentences})
