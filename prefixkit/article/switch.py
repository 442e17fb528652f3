"""Eight questions behind one system prompt: TTFT and whole answer per question, hit rate, tokens saved."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import difference, mean, ratio_of_means
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import switch as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record

ARMS = ("off", "on")
MEASURES = ("ttft", "e2e")


def question(record: Record) -> int:
    """Return the number of the question, from 1."""
    return int((record.get("condition") or {}).get("question") or 0)


def _questions(data: Data) -> list[int]:
    return sorted({question(r) for arm in ARMS for r in data.probes(arm, "switch")} - {0})


def _values(data: Data, arm: str, measure: str, wanted: int | None = None) -> dict[tuple[int, object], float]:
    """Return the measured milliseconds by question and repeat: of one question, or of all but the first."""
    return {
        (question(r), (r.get("condition") or {}).get("repeat")): float(r[f"{measure}_ms"])
        for r in data.probes(arm, "switch")
        if r.get(f"{measure}_ms") is not None and (question(r) == wanted if wanted is not None else question(r) > 1)
    }


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the switch experiment."""
    numbers = _questions(data)
    claims.add("switch_questions", len(numbers) or None, "count", source="off, on: switch probes")
    claims.add("switch_prompt_tokens", _prompt_tokens(data), "tokens", source="off, on: switch prompt_tokens, mean")
    for measure in MEASURES:
        _measure_claims(data, claims, measure, numbers)
    for number in numbers:
        cached = [r["cached_tokens"] for r in data.probes("on", "switch")
                  if question(r) == number and r.get("cached_tokens") is not None]  # fmt: skip
        claims.add(f"switch_q{number}_cached_tokens", mean(cached).value, "tokens", source="on: switch cached_tokens")
    _hit_rates(data, claims)
    _output_claims(data, claims)


def _prompt_tokens(data: Data) -> float | None:
    return mean(
        [r["prompt_tokens"] for arm in ARMS for r in data.probes(arm, "switch") if r.get("prompt_tokens")]
    ).value


def _measure_claims(data: Data, claims: Claims, measure: str, numbers: list[int]) -> None:
    for number in numbers:
        for arm in ARMS:
            found = mean(list(_values(data, arm, measure, number).values()))
            source = f"{arm}: switch, question {number}, {measure}_ms"
            claims.estimate(f"switch_q{number}_{measure}_{arm}_ms", found, "ms", source)
    off, on = (_values(data, arm, measure) for arm in ARMS)
    for arm, values in (("off", off), ("on", on)):
        source = f"{arm}: switch, questions 2 and later, {measure}_ms, mean"
        claims.estimate(f"switch_{measure}_{arm}_ms", mean(list(values.values())), "ms", source)
    pairs = [(off[key], on[key]) for key in off if key in on]
    source = f"off, on: switch, questions 2 and later, {measure}_ms, paired by question"
    claims.estimate(f"switch_{measure}_saved_ms", difference(pairs), "ms", source)
    claims.estimate(f"switch_{measure}_reduction", ratio_of_means(pairs), "fraction", source)


def _hit_rates(data: Data, claims: Claims) -> None:
    """Add the hit rates from counter differences: of all requests, and of those after the first."""
    for name, first in (("hit_rate_switch_all", True), ("hit_rate_switch", False)):
        rows = _counters(data, first)
        queries, hits = (sum(int(r[key]) for r in rows) for key in ("queries", "hits"))
        after = "" if first else " after the first request"
        claims.add(name, hits / queries if queries else None, "fraction",
                   source=f"on: counters of switch{after}, hits / queries")  # fmt: skip
    saved = [int(r.get("tokens_saved") or 0) for r in _counters(data, True)]
    claims.add("tokens_saved_switch", sum(saved) if saved else None, "tokens", source="on: counters of switch, hits")
    cached = [(r["cached_tokens"], r["prompt_tokens"]) for r in data.probes("on", "switch")
              if r.get("cached_tokens") is not None and r.get("prompt_tokens") and question(r) > 1]  # fmt: skip
    claims.add("hit_rate_switch_by_requests", sum(c for c, _ in cached) / sum(p for _, p in cached) if cached else None,
               "fraction", source="on: switch, questions 2 and later, cached_tokens / prompt_tokens")  # fmt: skip
    asked = len(_questions(data))
    claims.add("hit_rate_switch_ceiling", (asked - 1) / asked if asked else None, "fraction",
               source="switch: (n - 1) / n requests with a cold start")  # fmt: skip


def _counters(data: Data, with_first: bool) -> list[Record]:
    """Return the last good counters of each repeat, of all its requests or of those after the first."""
    last: dict[object, Record] = {}
    for r in data.arm("on").of("counters", "switch"):
        if (r.get("scope", "all") == "all") is with_first:
            last[r.get("repeat")] = r
    return [r for r in last.values() if r.get("status") in ("ok", "renamed") and r.get("queries")]


def _output_claims(data: Data, claims: Claims) -> None:
    tokens = [r["completion_tokens"] for arm in ARMS for r in data.probes(arm, "switch") if r.get("completion_tokens")]
    claims.add("switch_output_tokens", mean(tokens).value, "tokens", source="off, on: switch completion_tokens, mean")


def _picture(ctx: Context) -> Picture | None:
    rows = [
        {"arm": arm, "question": question(r), "measure": measure, "ms": float(r[f"{measure}_ms"])}
        for arm in ARMS
        for r in ctx.data.probes(arm, "switch")
        for measure in MEASURES
        if r.get(f"{measure}_ms") is not None and question(r)
    ]
    return figures.questions(pd.DataFrame(rows), ctx.words) if rows else None


def _table(ctx: Context) -> Table | None:
    numbers = _questions(ctx.data)
    if not numbers:
        return None
    rows = [
        (
            ctx.words("switch.first") if number == 1 else str(number),
            *(ctx.cell(f"switch_q{number}_{measure}_{arm}_ms") for measure in MEASURES for arm in ARMS),
            ctx.cell(f"switch_q{number}_cached_tokens"),
        )
        for number in numbers
    ]
    means = (ctx.words("switch.mean"), *(ctx.ci(f"switch_{m}_{arm}_ms") for m in MEASURES for arm in ARMS), "")
    return Table(("question", "ttft_off", "ttft_on", "e2e_off", "e2e_on", "cached_tokens"), (*rows, means))


def _sentences(ctx: Context) -> str:
    if not ctx.has("switch_questions"):
        return ctx.say("switch.none")
    if not ctx.has("switch_ttft_off_ms", "switch_ttft_on_ms"):
        arm = "off" if ctx.has("switch_ttft_off_ms") else "on"
        return joined(ctx.say("switch.one_arm", arm=ctx.words.arm(arm)), _hits(ctx))
    claim = ctx.claims["switch_ttft_saved_ms"]
    key = "unclear" if not claim.ci or claim.ci[0] <= 0 <= claim.ci[1] else "helped" if claim.ci[0] > 0 else "hurt"
    return joined(ctx.say(f"switch.{key}"), ctx.say("switch.whole"), _empty(ctx), _hits(ctx))


def _empty(ctx: Context) -> str:
    """Name the questions after the first that found nothing, where others found something."""
    found = {n: ctx.number(f"switch_q{n}_cached_tokens") for n in _questions(ctx.data) if n > 1}
    empty = [str(n) for n, tokens in found.items() if tokens == 0]
    return ctx.say("switch.also_empty", numbers=", ".join(empty)) if 0 < len(empty) < len(found) else ""


def _hits(ctx: Context) -> str:
    if not ctx.has("hit_rate_switch_all"):
        return ctx.say("switch.no_counters")
    if ctx.number("hit_rate_switch_all") == 0:
        return ctx.say("switch.no_hits")
    return ctx.say("switch.hits") if ctx.has("hit_rate_switch") else ctx.say("switch.hits_all")


SECTION = Section(claim, {"switch": _picture}, {"switch": _table}, {"switch": _sentences})
