"""The server's counters against the number of the request, and the three ways to a hit rate beside each other."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import EXPERIMENTS, Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.export.show import literal
from prefixkit.figures import counters as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record

WAYS = ("counters", "requests", "prediction")


def counted(data: Data) -> dict[str, Record]:
    """Return the last counters of each whole experiment of arm on."""
    found: dict[str, Record] = {}
    for r in data.arm("on").of("counters"):
        if r.get("scope", "all") == "all":
            found[str(r.get("experiment"))] = r
    return {name: found[name] for name in EXPERIMENTS if name in found}


def rates(record: Record, rows: list[Record]) -> dict[str, float | None]:
    """Return the hit rate by counters, by the requests' own cached tokens, and by block arithmetic."""
    asked = record.get("queries") if record.get("status") in ("ok", "renamed") else None
    known = [r for r in rows if r.get("cached_tokens") is not None and r.get("prompt_tokens")]
    prompt = sum(int(r["prompt_tokens"]) for r in known)
    predicted = record.get("predicted_tokens")
    return {
        "counters": record.get("hit_rate") if asked else None,
        "requests": sum(int(r["cached_tokens"]) for r in known) / prompt if prompt else None,
        "prediction": predicted / asked if predicted is not None and asked else None,
    }


def samples(data: Data) -> pd.DataFrame:
    """Return the counters after each request of the switch experiment: arm, repeat, request, queries, hits."""
    rows = [
        {
            "arm": arm,
            "repeat": r.get("repeat") or 0,
            "request": int(r["request"]),
            "queries": int(r["queries"]),
            "hits": int(r["hits"]),
        }
        for arm in ("on", "off")
        for r in data.arm(arm).of("sample", "switch")
        if r.get("queries") is not None and r.get("hits") is not None
    ]
    frame = pd.DataFrame(rows, columns=["arm", "repeat", "request", "queries", "hits"])
    return frame.drop_duplicates(["arm", "repeat", "request"], keep="last")


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of every experiment's hit rate, three ways."""
    for name, record in counted(data).items():
        for way, value in rates(record, data.probes("on", name)).items():
            claims.add(f"hits_{name}_{way}", value, "fraction", source=f"on: {name}, by {way}")
        claims.add(f"hits_{name}_queries", record.get("queries"), "tokens", source=f"on: {name} counters")
        claims.add(f"hits_{name}_hits", record.get("hits"), "tokens", source=f"on: {name} counters")


def _picture(ctx: Context) -> Picture | None:
    rows = samples(ctx.data)
    return figures.staircase(rows, ctx.words) if (rows["arm"] == "on").sum() > 1 else None


def _table(ctx: Context) -> Table | None:
    rows = []
    for name, record in counted(ctx.data).items():
        check = record.get("reconciliation") or {}
        verdict = ctx.words(
            "counters.agree" if check.get("agree") else "counters.differ" if check else "counters.unknown"
        )
        reason = str(check.get("reason") or record.get("message") or "") if not check.get("agree") else ""
        cells = (ctx.cell(f"hits_{name}_{c}") for c in ("queries", "hits", *WAYS))
        agreement = f"{verdict}: {' '.join(reason.split())}" if reason else verdict
        rows.append((ctx.words(f"experiment.{name}"), *cells, agreement))
    heads = ("experiment", "queries", "hits", "by_counters", "by_requests", "by_prediction", "agreement")
    return Table(heads, tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    found = counted(ctx.data)
    if not found:
        reasons = {str(r.get("message")) for r in ctx.data.arm("on").of("counters") if r.get("message")}
        return joined(ctx.say("counters.none"), *(literal(reason) for reason in sorted(reasons)))
    apart = [n for n, r in found.items() if r.get("reconciliation") and not r["reconciliation"].get("agree")]
    names = ", ".join(ctx.words(f"experiment.{name}") for name in apart)
    predicted = any(ctx.has(f"hits_{name}_prediction") for name in found)
    return joined(
        _shown(ctx),
        ctx.say("counters.apart", names=names) if apart else ctx.say(f"counters.together{'' if predicted else '_two'}"),
        ctx.say("counters.visits") if ctx.has("visits") else "",
    )


def _shown(ctx: Context) -> str:
    """Say what the staircase shows: whether every request after the first found something."""
    rows = samples(ctx.data)
    rows = rows[rows["arm"] == "on"].sort_values(["repeat", "request"])
    if len(rows) < 2:
        return ""
    later = rows.groupby("repeat")["hits"].diff().dropna()
    return ctx.say("counters.shown" if (later > 0).all() else "counters.shown_some")


SECTION = Section(claim, {"counters": _picture}, {"counters": _table}, {"counters": _sentences})
