"""What one changed token costs, by its place: everything from its block on is computed again."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import mutation as figures
from prefixkit.figures.style import Picture

NAME = "mutation"


def requests(data: Data) -> pd.DataFrame:
    """Return the warm requests of arm on: place of the changed token (NaN for the unchanged prompt), hits, ttft_ms."""
    rows = []
    for r in data.probes("on", NAME, "warm"):
        c = r.get("condition") or {}
        rows.append({"place": c.get("position_tokens"), "position": c.get("position"), "border": c.get("border"),
                     "prompt_tokens": r.get("prompt_tokens"), "cached_tokens": r.get("cached_tokens"),
                     "predicted": c.get("predicted_cached_tokens"), "ttft_ms": float(r["ttft_ms"])})  # fmt: skip
    columns = ["place", "position", "border", "prompt_tokens", "cached_tokens", "predicted", "ttft_ms"]
    return pd.DataFrame(rows, columns=columns)


def places(rows: pd.DataFrame) -> list[tuple[str, str | None, pd.DataFrame]]:
    """Return (name for claims, border or None, requests) of the unchanged prompt and of each place, head to tail."""
    found: list[tuple[str, str | None, pd.DataFrame]] = []
    if len(same := rows[rows["place"].isna()]):
        found.append(("unchanged", None, same))
    changed = rows[rows["place"].notna()]
    plain = changed[changed["border"].isna()]
    found += [(f"at_{round(100 * float(str(p)))}", None, own) for p, own in plain.groupby("position")]
    for border in ("before", "at", "after"):
        if len(own := changed[changed["border"] == border]):
            found.append((f"border_{border}", border, own))
    return found


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each place."""
    rows = requests(data)
    claims.add("mutation_n", len(rows) or None, "count", source="on: mutation warm probes")
    base = mean(list(rows[rows["place"].isna()]["ttft_ms"])).value
    for name, _, own in places(rows):
        source = f"on: mutation {name}"
        for column in ("place", "prompt_tokens", "cached_tokens", "predicted"):
            values = [float(v) for v in own[column].dropna()]
            claims.add(f"mutation_{name}_{column}", mean(values).value, "tokens", source=f"{source}, mean {column}")
        found = mean(list(own["ttft_ms"]))
        claims.estimate(f"mutation_{name}_ms", found, "ms", f"{source}, ttft_ms")
        cost = found.value - base if found.value is not None and base is not None else None
        claims.add(
            f"mutation_{name}_cost_ms", cost, "ms", source=f"{source}, ttft_ms less that of the unchanged prompt"
        )
    known = rows[rows["cached_tokens"].notna() & rows["predicted"].notna()]
    exact = float((known["cached_tokens"] == known["predicted"]).mean()) if len(known) else None
    claims.add("mutation_as_predicted", exact, "fraction", source="on: mutation, cached_tokens == block arithmetic")
    off = mean([float(r["ttft_ms"]) for r in data.probes("off", NAME)])
    claims.estimate("mutation_off_ms", off, "ms", "off: mutation, ttft_ms")


def _picture(ctx: Context) -> Picture | None:
    rows = requests(ctx.data)
    changed = rows[rows["place"].notna()]
    if changed.empty:
        return None
    return figures.staircase(rows, ctx.number("block_size"), ctx.number("mutation_off_ms"), ctx.words)


def _table(ctx: Context) -> Table | None:
    cells = []
    for name, border, own in places(requests(ctx.data)):
        share = "" if name == "unchanged" or border else f"{float(own['position'].iloc[0]):.0%}"
        label = ctx.words("mutation.unchanged") if name == "unchanged" else share or ctx.words(f"mutation.{border}")
        columns = ("place", "cached_tokens", "predicted", "ms", "cost_ms")
        cells.append((label, *(ctx.cell(f"mutation_{name}_{c}") for c in columns)))
    heads = ("place", "place_tokens", "cached_tokens", "predicted_tokens", "ttft_on", "cost")
    return Table(heads, tuple(cells)) if cells else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("mutation_n"):
        return ctx.say("mutation.none")
    said = [ctx.say("mutation.intro")]
    if ctx.has("mutation_at_0_cost_ms", "mutation_at_0_cached_tokens"):
        said.append(ctx.say("mutation.head"))
    if ctx.has("mutation_as_predicted"):
        exact = ctx.number("mutation_as_predicted") == 1
        said.append(ctx.say("mutation.exact" if exact else "mutation.inexact"))
    return joined(*said)


SECTION = Section(claim, {"mutation": _picture}, {"mutation": _table}, {"mutation": _sentences})
