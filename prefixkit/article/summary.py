"""The abstract, what was set, and the limits."""

from __future__ import annotations

from prefixkit.article import affinity, client
from prefixkit.article.data import EXPERIMENTS, Data
from prefixkit.article.length import fitted, unfound
from prefixkit.article.section import Context, Section, joined
from prefixkit.claims import Claims
from prefixkit.stats.precision import repeats_needed

PRECISION = 0.005


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of what was measured at all."""
    ran = [name for name in EXPERIMENTS if data.probes("on", name) or data.probes("off", name)]
    claims.add("experiments_run", len(ran), "count", source="off, on: experiments with an answered probe")
    params = data.params.get("experiments") or {}
    length = params.get("length") or {}
    claims.add("prompt_language", str(params.get("language") or "?"), "text", source="params: experiments.language")
    claims.add("warmup_requests", params.get("warmup_requests"), "count", source="params: experiments.warmup_requests")
    rounds = {(r.get("condition") or {}).get("round") for arm in ("off", "on") for r in data.probes(arm, "length")}
    claims.add("length_rounds", len(rounds) or None, "count", source="off, on: length probes, rounds")
    repeats = repeats_needed(data.records, PRECISION)
    source = "on: length, paired visits of the longest prompt"
    claims.add("repeats", repeats.have or None, "count", source=source)
    claims.add("reduction_half_width", repeats.reduction.half_width, "fraction", source=source)
    claims.add("repeats_wanted_precision", PRECISION, "fraction", source="chosen for illustration")
    claims.add("repeats_needed", repeats.needed, "count", source=source)
    asked = len(length.get("lengths") or []) + len(length.get("short_lengths") or [])
    claims.add("length_asked", asked or None, "count", source="params: experiments.length")


def gain(ctx: Context) -> str:
    """Return `helped`, `unclear`, `unfound`, `hurt` or `unknown`, by the longest prompts or else by the questions."""
    rows = fitted(ctx.data).by_length
    if rows and rows[-1].saved_ms.ci:
        ends = rows[-1].saved_ms.ci
    else:
        claim = ctx.claims.get("switch_ttft_saved_ms")
        ends = list(claim.ci) if claim and claim.ci else []
    if not ends:
        return "unknown"
    unclear = "unfound" if rows and unfound(ctx.data) else "unclear"
    return "helped" if ends[0] > 0 else "hurt" if ends[1] < 0 else unclear


def _abstract(ctx: Context) -> str:
    said = [
        ctx.say("abstract.what"),
        ctx.say("abstract.random") if _random(ctx) else "",
        ctx.say(f"abstract.{gain(ctx)}"),
    ]
    if ctx.has("ttft_reduction_longest"):
        said.append(ctx.say("abstract.longest"))
    if ctx.has("slope_reduction"):
        said.append(ctx.say("abstract.slopes" + _unclear(ctx, "slope_reduction")))
    if ctx.has("control_reduction_longest") and ctx.claims["control_verdict"].value == "different":
        said.append(ctx.say("abstract.arms_differ"))
    if ctx.has("switch_ttft_reduction"):
        said.append(ctx.say("abstract.switch" + _unclear(ctx, "switch_ttft_saved_ms")))
    if ctx.has("hit_rate_switch"):
        said.append(ctx.say("abstract.hits"))
    if gained := affinity.kept(ctx):
        said.append(ctx.say("abstract.engines", **gained))
    if ctx.has("cloud_ttft_p50_ms"):
        said.append(ctx.say("abstract.cloud"))
    missing = [name for name in ("off", "on") if not ctx.data.probes(name)]
    said += [ctx.say("abstract.missing", arm=ctx.words.arm(name)) for name in missing]
    return joined(*said)


def _unclear(ctx: Context, name: str) -> str:
    """Return the ending of a sentence's key: none where the claim's whole interval lies above zero."""
    ends = ctx.claims[name].ci
    return "" if ends and ends[0] > 0 else "_unclear"


def _random(ctx: Context) -> bool:
    return ctx.claims["model_weights"].value == "random"


def _setting(ctx: Context) -> str:
    engines = ctx.say("setting.engines") if ctx.has("engines") else ""
    interleaved = ctx.say("setting.interleaved") if ctx.has("visits") else ""
    said = [ctx.say("setting.server"), engines, ctx.say("setting.warmup"), interleaved]
    if ctx.has("length_rounds"):
        said.append(ctx.say("setting.length"))
    said.append(ctx.say("setting.language", language=ctx.words(f"language.{ctx.claims['prompt_language'].value}")))
    said.append(ctx.say("setting.random") if _random(ctx) else "")
    return joined(*said)


def _limits(ctx: Context) -> str:
    """List what was not measured and what the numbers do not say."""
    points = [ctx.say("limits.machine"), ctx.say("limits.model")]
    if _random(ctx):
        points.append(ctx.say("limits.random"))
    possible = [n for n in EXPERIMENTS if n != "affinity" or affinity.engines(ctx.data) > 1]
    absent = [n for n in possible if not ctx.data.probes("on", n) and not ctx.data.probes("off", n)]
    if absent:
        points.append(ctx.say("limits.absent", names=", ".join(ctx.words(f"experiment.{n}") for n in absent)))
    if not ctx.data.probes("cloud"):
        points.append(ctx.say("limits.cloud"))
    if not ctx.number("parts_n"):
        points.append(ctx.say("limits.parts"))
    if ctx.has("reduction_half_width", "repeats_needed"):
        points.append(ctx.say("limits.repeats"))
    points += [ctx.say("limits.interval"), ctx.say("limits.exact"), *client.limits(ctx)]
    return "\n".join(f"- {point}" for point in points)


SECTION = Section(claim, sentences={"abstract": _abstract, "setting": _setting, "limits": _limits})
