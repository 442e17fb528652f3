"""A working set around the KV capacity: hit rate and TTFT against their quotient, beside an LRU's prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import eviction as figures
from prefixkit.figures.style import Picture

NAME = "eviction"


def sets(data: Data) -> pd.DataFrame:
    """Return one row for each order and working set: load, prompts, capacity, hit rate, predicted rate, mean TTFT."""
    groups: dict[tuple[str, float], list[dict[str, object]]] = {}
    for r in data.probes("on", NAME, "warm"):
        c = r.get("condition") or {}
        if c.get("ratio") is not None and r.get("prompt_tokens"):
            groups.setdefault((str(c.get("order")), float(c["ratio"])), []).append({**c, **r})
    rows = []
    for (order, ratio), own in sorted(groups.items()):
        known = [(r["cached_tokens"], r.get("predicted_cached_tokens"), r["prompt_tokens"]) for r in own]
        total = sum(p for c, _, p in known if c is not None)  # type: ignore[misc]
        hits = sum(c for c, _, _ in known if c is not None)  # type: ignore[misc]
        predicted = [p for _, p, _ in known]
        asked = sum(p for _, _, p in known)  # type: ignore[misc]
        rows.append({
            "order": order, "ratio": ratio, "load": own[0].get("load") or ratio, "prompts": own[0].get("prompts"),
            "working_set_tokens": own[0].get("working_set_tokens"), "capacity_tokens": own[0].get("capacity_tokens"),
            "hit_rate": hits / total if total else np.nan,
            "predicted_rate": np.nan if None in predicted else sum(predicted) / asked,  # type: ignore[arg-type]
            "ttft": mean([float(str(r["ttft_ms"])) for r in own]), "n": len(own),
        })  # fmt: skip
    return pd.DataFrame(rows)


def _key(row: pd.Series) -> str:
    return f"eviction_{row['order']}_{round(100 * float(row['ratio']))}"


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each working set."""
    rows = sets(data)
    claims.add("eviction_sets", len(rows) or None, "count", source="on: eviction warm probes")
    for _, row in rows.iterrows():
        key, source = _key(row), f"on: eviction {row['order']}, {row['ratio']:g} of capacity, warm probes"
        claims.add(f"{key}_load", row["load"], "fraction", source=f"{source}, working set / capacity")
        claims.add(f"{key}_prompts", row["prompts"], "count", source=source)
        claims.add(f"{key}_hit_rate", row["hit_rate"], "fraction", source=f"{source}, cached_tokens / prompt_tokens")
        claims.add(f"{key}_predicted", row["predicted_rate"], "fraction", source=f"{source}, LRU of that size")
        claims.estimate(f"{key}_ttft_ms", row["ttft"], "ms", f"{source}, ttft_ms")
    capacity = list(rows["capacity_tokens"].dropna()) if len(rows) else []
    claims.add("eviction_capacity_tokens", float(capacity[0]) if capacity else None, "tokens",
               source="on: eviction, capacity as the server reports it")  # fmt: skip
    below = rows[rows["load"] <= 1]["hit_rate"].max() if len(rows) else None
    above = rows[rows["load"] > 1]["hit_rate"].min() if len(rows) else None
    for name, value in (("eviction_best_below", below), ("eviction_worst_above", above)):
        claims.add(name, None if value is None or pd.isna(value) else float(value), "fraction", source="on: eviction")


def _picture(ctx: Context) -> Picture | None:
    requests = [
        {"order": str(c.get("order")), "load": c.get("load") or c["ratio"], "ttft_ms": float(r["ttft_ms"])}
        for r in ctx.data.probes("on", NAME, "warm")
        if (c := r.get("condition") or {}).get("ratio") is not None
    ]
    return figures.cliff(sets(ctx.data).drop(columns="ttft"), pd.DataFrame(requests), ctx.words) if requests else None


def _table(ctx: Context) -> Table | None:
    rows = sets(ctx.data)
    cells = [
        (ctx.words(f"order.{row['order']}"),
         *(ctx.cell(f"{_key(row)}_{c}") for c in ("load", "prompts", "hit_rate", "predicted")),
         ctx.ci(f"{_key(row)}_ttft_ms"))
        for _, row in rows.iterrows()
    ]  # fmt: skip
    heads = ("order", "load", "prompts", "hit_rate", "predicted_rate", "ttft_on")
    return Table(heads, tuple(cells)) if cells else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("eviction_sets"):
        return ctx.say("eviction.none")
    both = ctx.has("eviction_best_below", "eviction_worst_above")
    return joined(ctx.say("eviction.intro"), ctx.say("eviction.cliff") if both else "")


SECTION = Section(claim, {"eviction": _picture}, {"eviction": _table}, {"eviction": _sentences})
