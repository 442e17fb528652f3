"""Several engines: what each one's counters say, and what affinity to an engine gives back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import pandas as pd

from prefixkit.article.data import EXPERIMENTS, Data
from prefixkit.article.estimates import difference, mean, ratio_of_means
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims, text
from prefixkit.figures import affinity as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record

NAME = "affinity"
ROUTINGS = ("balanced", "sticky")
COUNTED = ("ok", "renamed")


@lru_cache(maxsize=8)
def requests(data: Data) -> pd.DataFrame:
    """Return each answered request: routing, users, round, position, prefix, request (of its prefix), times, tokens."""
    rows = []
    for r in data.probes("on", NAME):
        c = r.get("condition") or {}
        rows.append({"routing": c.get("routing"), "users": int(c.get("concurrency") or 1), "round": c.get("round"),
                     "position": c.get("position"), "prefix": c.get("prefix"), "request": int(c.get("request") or 0),
                     "ttft_ms": float(r["ttft_ms"]), "cached_tokens": r.get("cached_tokens")})  # fmt: skip
    columns = ["routing", "users", "round", "position", "prefix", "request", "ttft_ms", "cached_tokens"]
    return pd.DataFrame(rows, columns=columns)


def engines(data: Data) -> int:
    """Return how many engines the last server of arm on had."""
    return int(data.arm("on").run.get("engines") or 1)


def _users(data: Data) -> list[int]:
    return sorted(set(requests(data)["users"]))


def _scopes(data: Data) -> Iterator[tuple[str, str, int]]:
    for users in _users(data):
        for routing in ROUTINGS:
            yield f"{NAME}_{routing}_{users}", routing, users


def _sums(records: Iterable[Record]) -> dict[str, tuple[int, int]]:
    """Return queries and hits by engine, summed over stretches that were counted."""
    found: dict[str, tuple[int, int]] = {}
    for r in records:
        if r.get("status") in COUNTED:
            for engine, c in (r.get("per_engine") or {}).items():
                queries, hits = found.get(engine, (0, 0))
                found[engine] = queries + int(c["queries"]), hits + int(c["hits"])
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def _claim_counters(claims: Claims, key: str, records: list[Record], cached: int | None, source: str) -> None:
    """Make the claims of each engine's counters, of their total, and of what the requests reported themselves."""
    rows = _sums(records)
    total = sum(queries for queries, _ in rows.values()), sum(hits for _, hits in rows.values())
    for engine, (queries, hits) in [*((f"engine_{e}", row) for e, row in rows.items()), ("total", total)]:
        name, where = f"{key}_{engine}", f"{source}, {engine.replace('_', ' ')}"
        claims.add(f"{name}_queries", queries, "tokens", source=where)
        claims.add(f"{name}_hits", hits, "tokens", source=where)
        claims.add(f"{name}_hit_rate", hits / queries if queries else None, "fraction", source=where)
    claims.add(f"{key}_cached", cached, "tokens", source=f"{source}: sum of the requests' cached_tokens")


def _cached(rows: Iterable[object]) -> int | None:
    values = [int(value) for value in rows if isinstance(value, int | float) and value == value]
    return sum(values) if values else None


@lru_cache(maxsize=8)
def counted(data: Data) -> tuple[str, ...]:
    """Return the experiments of arm on that the counters of several engines were read around."""
    if engines(data) < 2:
        return ()
    return tuple(name for name in EXPERIMENTS if name != NAME and _sums(_whole(data, name)))


def _whole(data: Data, name: str) -> list[Record]:
    return [r for r in data.arm("on").of("counters", name) if r.get("scope", "all") == "all"]


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of several engines; none where there is one."""
    for name in counted(data):
        cached = _cached(r.get("cached_tokens") for r in data.probes("on", name))
        _claim_counters(claims, f"engines_{name}", _whole(data, name), cached, f"on: {name} counters")
    rows = requests(data)
    if rows.empty:
        return
    claims.add("engines", engines(data), "count", source="on: run record, engines")
    claims.add(f"{NAME}_n", len(rows), "count", source=f"on: {NAME} probes answered")
    for key, routing, users in _scopes(data):
        own = rows[(rows["routing"] == routing) & (rows["users"] == users)]
        source = f"on: {NAME} {routing}, {users} at once"
        counters = [r for r in data.arm("on").of("counters", NAME) if r.get("scope") == f"{routing}/{users}"]
        _claim_counters(claims, key, counters, _cached(own["cached_tokens"]), source)
        claims.add(f"{key}_n", len(own), "count", source=source)
        claims.estimate(f"{key}_ttft_ms", mean(list(own["ttft_ms"])), "ms", f"{source}, ttft_ms")
    for users in _users(data):
        pairs = _pairs(rows[rows["users"] == users])
        source = f"on: {NAME}, {users} at once, pairs of one round and position: balanced and sticky"
        claims.estimate(f"{NAME}_saved_{users}_ms", difference(pairs), "ms", f"{source}, difference")
        claims.estimate(f"{NAME}_reduction_{users}", ratio_of_means(pairs), "fraction", f"{source}, 1 - ratio of means")


def _pairs(rows: pd.DataFrame) -> list[tuple[float, float]]:
    """Return the TTFTs of balanced and sticky requests that stand at one place of one round."""
    sides = {routing: rows[rows["routing"] == routing].set_index(["round", "position"])["ttft_ms"]
             for routing in ROUTINGS}  # fmt: skip
    both = pd.concat(sides, axis=1, join="inner")
    return [(float(a), float(b)) for a, b in both[list(ROUTINGS)].to_numpy()]


def _picture(ctx: Context) -> Picture | None:
    rows = requests(ctx.data)
    return None if rows.empty else figures.by_request(rows, ctx.words)


def _counter_rows(ctx: Context, key: str, *lead: str) -> list[tuple[str, ...]]:
    """Return a row for each engine, then one for all; what the requests report stands in the last."""
    prefix, suffix = f"{key}_engine_", "_queries"
    names = [n.removeprefix(prefix).removesuffix(suffix) for n in ctx.claims if n.startswith(prefix)
             and n.endswith(suffix)]  # fmt: skip
    parts = ("queries", "hits", "hit_rate")
    rows = [(*lead, name, *(ctx.cell(f"{prefix}{name}_{p}") for p in parts), "") for name in names]
    total = (
        *lead,
        ctx.words("affinity.total"),
        *(ctx.cell(f"{key}_total_{p}") for p in parts),
        ctx.cell(f"{key}_cached"),
    )
    return [*rows, total]


def _table(ctx: Context) -> Table | None:
    rows: list[tuple[str, ...]] = []
    for key, routing, users in _scopes(ctx.data):
        own = _counter_rows(ctx, key, ctx.say(f"affinity.{routing}"), f"{users}")
        rows += [(*row, "") for row in own[:-1]] + [(*own[-1], ctx.ci(f"{key}_ttft_ms"))]
    heads = ("routing", "at_once", "engine", "queries", "hits", "hit_rate", "cached_tokens", "ttft")
    return Table(heads, tuple(rows)) if rows else None


def _engines_table(ctx: Context) -> Table | None:
    rows = [row for name in counted(ctx.data)
            for row in _counter_rows(ctx, f"engines_{name}", ctx.words(f"experiment.{name}"))]  # fmt: skip
    heads = ("experiment", "engine", "queries", "hits", "hit_rate", "cached_tokens")
    return Table(heads, tuple(rows)) if rows else None


def kept(ctx: Context) -> dict[str, str] | None:
    """Return what a client that keeps a prefix to one engine gains with the fewest users; None without a gain."""
    users = min(_users(ctx.data), default=None)
    if users is None or not _helped(ctx, users):
        return None
    names = {"saved": f"{NAME}_saved_{users}_ms", "reduction": f"{NAME}_reduction_{users}"}
    full = {key: text(ctx.claims[name], ctx.words.lang, "full") for key, name in names.items()}
    return {**full, **_rates(ctx, users)}


def _helped(ctx: Context, users: int) -> bool:
    ends = ctx.claims[f"{NAME}_saved_{users}_ms"].ci
    return ends is not None and ends[0] > 0


def _rates(ctx: Context, users: int) -> dict[str, str]:
    return {f"{r}_rate": ctx.cell(f"{NAME}_{r}_{users}_total_hit_rate") for r in ROUTINGS}


def _gain(ctx: Context, users: int) -> str:
    values = {
        "users": str(users),
        "saved": ctx.ci(f"{NAME}_saved_{users}_ms"),
        "reduction": ctx.ci(f"{NAME}_reduction_{users}"),
        **_rates(ctx, users),
        **{f"{r}_ms": ctx.ci(f"{NAME}_{r}_{users}_ttft_ms") for r in ROUTINGS},
    }
    ending = "helped" if _helped(ctx, users) else "unclear"
    return joined(ctx.say("affinity.hits", **values), ctx.say(f"affinity.{ending}", **values))


def _sentences(ctx: Context) -> str:
    others = ctx.say("affinity.others") if counted(ctx.data) else ""
    if requests(ctx.data).empty:
        return others or ctx.say("affinity.none")
    return joined(ctx.say("affinity.intro"), *(_gain(ctx, users) for users in _users(ctx.data)), others)


SECTION = Section(
    claim, {"affinity": _picture}, {"affinity": _table, "engines": _engines_table}, {"affinity": _sentences}
)
