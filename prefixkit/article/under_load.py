"""Under load: TTFT quantiles, queue time and throughput by users and by arrival rate, on against off."""

from __future__ import annotations

from functools import lru_cache

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import under_load as figures
from prefixkit.figures.style import Picture
from prefixkit.stats.load_steps import Step, steps
from prefixkit.stats.quantiles import quantile, quantile_difference

ARMS = ("off", "on")
NAME = "load"
QUANTILES = (0.5, 0.9, 0.99)


@lru_cache(maxsize=8)
def requests(data: Data) -> pd.DataFrame:
    """Return each answered request: arm, step, kind (users or rate), level, first (raced for its prefix), times."""
    rows = []
    for arm in ARMS:
        for r in data.probes(arm, NAME):
            c = r.get("condition") or {}
            kind = "users" if c.get("concurrency") is not None else "rate"
            level = c.get("concurrency") if kind == "users" else c.get("rate_per_s")
            if level is not None:
                rows.append({"arm": arm, "step": f"{kind}/{level:g}", "kind": kind, "level": float(level),
                             "first": bool(c.get("first_arrival")), "ttft_ms": float(r["ttft_ms"]),
                             "queue_ms": (r.get("server") or {}).get("queue_ms")})  # fmt: skip
    return pd.DataFrame(rows, columns=["arm", "step", "kind", "level", "first", "ttft_ms", "queue_ms"])


@lru_cache(maxsize=8)
def rates(data: Data) -> dict[tuple[str, str], Step]:
    """Return the rates of each arm's steps."""
    if requests(data).empty:
        return {}
    return {(arm, step.name): step for arm in ARMS for step in steps(data.arm(arm).records)}


def _steps(data: Data) -> list[str]:
    return list(dict.fromkeys(requests(data)["step"]))


def _key(step: str) -> str:
    return f"load_{step.replace('/', '_').replace('.', '_')}"


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of each step; first arrivals that raced for a cold prefix are counted apart."""
    rows = requests(data)
    claims.add("load_n", len(rows) or None, "count", source="off, on: load probes answered")
    claims.add("load_racing_n", int(rows["first"].sum()), "count", source="off, on: load probes, first_arrival")
    for step in _steps(data):
        own = rows[(rows["step"] == step) & ~rows["first"]]
        key, sides = _key(step), {arm: list(own[own["arm"] == arm]["ttft_ms"]) for arm in ARMS}
        for arm in ARMS:
            source = f"{arm}: load {step}, without first arrivals"
            claims.add(f"{key}_{arm}_n", len(sides[arm]), "count", source=source)
            for q in QUANTILES:
                found = quantile(sides[arm], q)
                claims.estimate(f"{key}_{arm}_p{100 * q:g}_ms", found, "ms", f"{source}, ttft_ms")
            waited = list(own[own["arm"] == arm]["queue_ms"].dropna())
            claims.estimate(f"{key}_{arm}_queue_p50_ms", quantile(waited, 0.5), "ms", f"{source}, server queue_ms")
            racing = list(rows[(rows["step"] == step) & rows["first"] & (rows["arm"] == arm)]["ttft_ms"])
            claims.add(f"{key}_{arm}_racing_n", len(racing), "count", source=f"{arm}: load {step}, first arrivals")
            claims.estimate(
                f"{key}_{arm}_racing_p50_ms", quantile(racing, 0.5), "ms", f"{arm}: load {step}, first arrivals"
            )
            if rate := rates(data).get((arm, step)):
                for name, value, unit in (
                    ("offered_per_s", rate.offered_per_s, "req/s"), ("started_per_s", rate.started_per_s, "req/s"),
                    ("finished_per_s", rate.finished_per_s, "req/s"),
                    ("output_tokens_per_s", rate.output_tokens_per_s, "tokens/s"),
                ):  # fmt: skip
                    claims.add(
                        f"{key}_{arm}_{name}", value, unit, source=f"{arm}: load {step}, first start to last end"
                    )
        difference = quantile_difference(sides["off"], sides["on"], 0.5)
        claims.estimate(f"{key}_saved_p50_ms", difference, "ms", f"off, on: load {step}, difference of medians")


def _picture(ctx: Context) -> Picture | None:
    rows = requests(ctx.data)
    return figures.ladder(rows, ctx.words) if len(rows) else None


def _label(ctx: Context, step: str) -> str:
    kind, _, level = step.partition("/")
    return ctx.say(f"load.{kind}", n=level)


def _table(ctx: Context) -> Table | None:
    rows = []
    for step in _steps(ctx.data):
        for arm in ARMS:
            key = f"{_key(step)}_{arm}"
            if not ctx.number(f"{key}_n") and not ctx.number(f"{key}_racing_n"):
                continue
            settled = bool(ctx.number(f"{key}_n"))
            empty = "" if settled else "–"
            quantiles = [ctx.ci(f"{key}_p{q}_ms") if ctx.has(f"{key}_p{q}_ms") else empty for q in (50, 90, 99)]
            others = ("queue_p50_ms", "offered_per_s", "finished_per_s", "output_tokens_per_s")
            cells = [ctx.cell(f"{key}_{c}") if ctx.has(f"{key}_{c}") else "" for c in others]
            racing = [ctx.cell(f"{key}_racing_{c}") if ctx.number(f"{key}_racing_n") else "" for c in ("n", "p50_ms")]
            rows.append((_label(ctx, step), ctx.words.arm(arm), ctx.cell(f"{key}_n"), *quantiles, *cells, *racing))
    heads = ("step", "arm", "n", "ttft_p50", "ttft_p90", "ttft_p99", "queue", "offered", "throughput", "tokens_per_s",
             "racing_n", "racing")  # fmt: skip
    return Table(heads, tuple(rows)).without_empty() if rows else None


def _top(ctx: Context) -> str:
    """Compare the medians at the most users whose requests did not all race for a cold prefix."""
    rows = requests(ctx.data)
    for level in sorted(set(rows[rows["kind"] == "users"]["level"]), reverse=True):
        key = _key(f"users/{level:g}")
        if ctx.has(f"{key}_off_p50_ms", f"{key}_on_p50_ms"):
            cells = {arm: ctx.ci(f"{key}_{arm}_p50_ms") for arm in ARMS}
            return ctx.say("load.top", users=f"{level:g}", **cells)
    return ""


def _all_raced(ctx: Context) -> str:
    """Name the steps in which every request raced, so that only the last columns hold their times."""
    steps = [s for s in _steps(ctx.data) if not any(ctx.number(f"{_key(s)}_{arm}_n") for arm in ARMS)]
    return ctx.say("load.all_raced", steps=", ".join(_label(ctx, s) for s in steps)) if steps else ""


def _sentences(ctx: Context) -> str:
    rows = requests(ctx.data)
    if rows.empty:
        return ctx.say("load.none")
    said = [ctx.say("load.intro")]
    said += [_top(ctx), ctx.say("load.estimable")]
    if ctx.number("load_racing_n"):
        said += [ctx.say("load.racing"), _all_raced(ctx)]
    behind = [f"{_label(ctx, step)} ({ctx.words.arm(arm)})" for (arm, step), r in rates(ctx.data).items() if r.behind]
    if behind:
        said.append(ctx.say("load.behind", steps=", ".join(behind)))
    return joined(*said)


SECTION = Section(claim, {"load": _picture}, {"load": _table}, {"load": _sentences})
