"""Turn by turn: TTFT and cached tokens of a chat that grows, stays fixed, or is rewritten by its client."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import conversation as figures
from prefixkit.figures.style import Picture
from prefixkit.stats import mean_estimate, paired_reduction
from prefixkit.stats.clusters import Units, units

ARMS = ("off", "on")
NAME = "conversation"


def turns(data: Data) -> pd.DataFrame:
    """Return each answered turn: arm, mode, round, turn, ttft_ms, prompt_tokens, cached_tokens, predicted."""
    rows = []
    for arm in ARMS:
        for r in data.probes(arm, NAME):
            c = r.get("condition") or {}
            if c.get("turn") is not None:
                tokens = {key: r.get(key) for key in ("prompt_tokens", "cached_tokens")}
                place = {"arm": arm, "mode": str(c.get("mode")), "round": str(c.get("round")), "turn": int(c["turn"])}
                predicted = c.get("predicted_cached_tokens")
                rows.append({**place, **tokens, "ttft_ms": float(r["ttft_ms"]), "predicted": predicted})
    columns = ["arm", "mode", "round", "turn", "ttft_ms", "prompt_tokens", "cached_tokens", "predicted"]
    return pd.DataFrame(rows, columns=columns)


def _modes(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows["mode"]))


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each turn, and of all later turns of each mode."""
    rows = turns(data)
    claims.add("conversation_n", len(rows) or None, "count", source="off, on: conversation probes")
    for mode in _modes(rows):
        own = rows[rows["mode"] == mode]
        for turn in sorted(set(own["turn"])):
            here, key = own[own["turn"] == turn], f"conversation_{mode}_{turn}"
            for arm in ARMS:
                found = mean(list(here[here["arm"] == arm]["ttft_ms"]))
                claims.estimate(f"{key}_{arm}_ms", found, "ms", f"{arm}: conversation {mode}, turn {turn}, ttft_ms")
            on = here[here["arm"] == "on"]
            for column, name in (("prompt_tokens", "prompt"), ("cached_tokens", "cached"), ("predicted", "predicted")):
                values = [float(v) for v in on[column].dropna()]
                claims.add(f"{key}_{name}_tokens", mean(values).value, "tokens",
                           source=f"on: conversation {mode}, turn {turn}, mean {name} tokens")  # fmt: skip
        later = own[own["turn"] > 1]
        pairs = paired(rows, mode)
        each = "conversation" if pairs.grouped else "turn"
        source = f"off, on: conversation {mode}, turns 2 and later, ttft_ms, pairs of the same turn; one value a {each}"
        claims.estimate(f"conversation_{mode}_saved_ms", mean_estimate(pairs.off - pairs.on), "ms", source)
        claims.estimate(f"conversation_{mode}_reduction", paired_reduction(pairs.on, pairs.off), "fraction", source)
        claims.add(f"conversation_{mode}_rounds", pairs.groups or None, "count", source=source)
        hits = later[(later["arm"] == "on") & later["cached_tokens"].notna()]
        rate = hits["cached_tokens"].sum() / hits["prompt_tokens"].sum() if len(hits) else None
        claims.add(
            f"conversation_{mode}_hit_rate", rate, "fraction", source=f"on: conversation {mode}, turns 2 and later"
        )
    _exactness(rows, claims)


def paired(rows: pd.DataFrame, mode: str) -> Units:
    """Return off and on of the turns after the first of one mode, paired by conversation and turn."""
    own = rows[(rows["mode"] == mode) & (rows["turn"] > 1)]
    off, on = (
        dict(zip(zip(side["round"], side["turn"], strict=True), side["ttft_ms"], strict=True))
        for side in (own[own["arm"] == arm] for arm in ARMS)
    )
    return units(off, on)


def _exactness(rows: pd.DataFrame, claims: Claims) -> None:
    known = rows[(rows["arm"] == "on") & rows["cached_tokens"].notna() & rows["predicted"].notna()]
    exact = float((known["cached_tokens"] == known["predicted"]).mean()) if len(known) else None
    claims.add("conversation_as_predicted", exact, "fraction", source="on: conversation, cached_tokens == prediction")


def _picture(ctx: Context) -> Picture | None:
    rows = turns(ctx.data)
    return figures.by_turn(rows, ctx.words) if len(rows) else None


def _table(ctx: Context) -> Table | None:
    rows = turns(ctx.data)
    cells = [
        (ctx.words(f"mode.{mode}"), str(turn),
         *(ctx.cell(f"conversation_{mode}_{turn}_{c}") for c in
           ("off_ms", "on_ms", "prompt_tokens", "cached_tokens", "predicted_tokens")))
        for mode in _modes(rows)
        for turn in sorted(set(rows[rows["mode"] == mode]["turn"]))
    ]  # fmt: skip
    heads = ("mode", "turn", "ttft_off", "ttft_on", "prompt_tokens", "cached_tokens", "predicted_tokens")
    return Table(heads, tuple(cells)) if cells else None


def _sentences(ctx: Context) -> str:
    rows = turns(ctx.data)
    if rows.empty:
        return ctx.say("conversation.none")
    said, grouped = [], []
    for mode in _modes(rows):
        if not ctx.has(f"conversation_{mode}_saved_ms"):
            continue
        saved = ctx.claims[f"conversation_{mode}_saved_ms"].ci or (0.0, 0.0)
        verdict = "helped" if saved[0] > 0 else "hurt" if saved[1] < 0 else "unclear"
        grouped.append(paired(rows, mode).grouped)
        cell = {c: ctx.cell(f"conversation_{mode}_{c}") for c in ("reduction", "hit_rate")}
        spread = ctx.ci(f"conversation_{mode}_saved_ms")
        said.append(ctx.say(f"conversation.{verdict}", mode=ctx.words(f"mode.{mode}"), saved=spread, **cell))
    if said:
        said.append(ctx.say("conversation.by_conversation" if all(grouped) else "conversation.by_turn"))
    else:
        said.append(ctx.say("conversation.one_arm"))
    if ctx.has("conversation_as_predicted"):
        exact = ctx.number("conversation_as_predicted") == 1
        said.append(ctx.say("conversation.exact" if exact else "conversation.inexact"))
    return joined(ctx.say("conversation.intro"), *said)


SECTION = Section(claim, {"conversation": _picture}, {"conversation": _table}, {"conversation": _sentences})
