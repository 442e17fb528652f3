"""TTFT against prompt length: the lines, the table, what each length saves, from where on it pays."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article import affinity
from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import length as figures
from prefixkit.figures.style import Picture
from prefixkit.stats import Estimate, Fit, Line, fit

LINES = ("off", "on", "control")
SERIES = {"off": ("off", "cold"), "on": ("on", "warm"), "control": ("on", "control"), "cold": ("on", "cold")}


@lru_cache(maxsize=8)
def fitted(data: Data) -> Fit:
    """Return the fit of the length experiment, computed once for each data set."""
    return fit(data.records)


def lines(found: Fit) -> dict[str, Line]:
    """Return the lines by series."""
    return {"off": found.off, "on": found.on, "control": found.control}


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the length experiment."""
    found = fitted(data)
    for name, line in lines(found).items():
        arm, phase = SERIES[name]
        source = f"{arm}: length {phase} probes, ttft_ms against prompt_tokens"
        claims.estimate(f"slope_{name}_ms_per_1k", line.slope, "ms/1k", source)
        claims.estimate(f"intercept_{name}_ms", line.intercept, "ms", source)
        claims.add(f"r2_{name}", line.r2, "p", source=source)
        claims.add(f"lack_of_fit_{name}_p", line.lack_of_fit.p, "p", source=f"{source}, F test of lack of fit")
        claims.estimate(f"drift_{name}_ms", line.drift, "ms", f"{source}, first to last request of the run")
        claims.add(f"length_{name}_n", line.n, "count", source=source)
    both = "off: length cold, on: length warm"
    # Without a bounded interval the ratio is noise over noise: no number, so that no check can pass on it.
    reduction = found.slope_reduction if found.slope_reduction.ci else Estimate(None)
    claims.estimate("slope_reduction", reduction, "fraction", f"{both}: 1 - slope_on / slope_off")
    claims.estimate("slope_difference_ms_per_1k", found.slope_difference, "ms/1k", f"{both}: slope_off - slope_on")
    claims.estimate(
        "intercept_difference_ms", found.intercept_difference, "ms", f"{both}: intercept_off - intercept_on"
    )
    _by_length(found, claims, both)
    _break_even(data, claims)


def _by_length(found: Fit, claims: Claims, source: str) -> None:
    rows = found.by_length
    for index, row in enumerate(rows, 1):
        here = f"{source}, {row.tokens:.0f} prompt tokens"
        claims.add(f"length_{index}_tokens", row.tokens, "tokens", source=here)
        for name, estimate in (("off_ms", row.off_ms), ("on_ms", row.on_ms), ("saved_ms", row.saved_ms)):
            claims.estimate(f"length_{index}_{name}", estimate, "ms", here)
        claims.estimate(f"length_{index}_reduction", row.reduction, "fraction", here)
    claims.add("lengths", len(rows) or None, "count", source=source)
    last, first = (rows[-1], rows[0]) if rows else (None, None)
    empty = Estimate(None)
    for name, end in (("longest", last), ("shortest", first)):
        here = f"{source}, {name} prompt"
        claims.add(f"{name}_tokens", end.tokens if end else None, "tokens", source=here)
        claims.estimate(f"ttft_reduction_{name}", end.reduction if end else empty, "fraction", here)
        claims.estimate(f"{name}_off_ms", end.off_ms if end else empty, "ms", here)
        claims.estimate(f"{name}_on_ms", end.on_ms if end else empty, "ms", here)


def _break_even(data: Data, claims: Claims) -> None:
    """Add the shortest measured length from which on every longer one is faster with the cache, interval and all."""
    rows = fitted(data).by_length
    paying: float | None = None
    for row in reversed(rows):
        if row.saved_ms.low is None or row.saved_ms.low <= 0:
            break
        paying = row.tokens
    claims.add("pays_from_tokens", paying, "tokens",
               source="off, on: length; shortest length from which on the interval of off - on is above 0")  # fmt: skip
    half: float | None = None
    for row in reversed(rows):
        if row.reduction.value is None or row.reduction.value < 0.5 or paying is None or row.tokens < paying:
            break
        half = row.tokens
    claims.add("halves_from_tokens", half, "tokens",
               source="off, on: length; shortest length from which on at least half the TTFT is saved")  # fmt: skip


def unfound(data: Data) -> bool:
    """Tell whether all warm requests report that they found nothing in the cache."""
    found = [r.get("cached_tokens") for r in data.probes("on", "length", "warm")]
    return bool(found) and all(tokens == 0 for tokens in found)


def points(data: Data) -> pd.DataFrame:
    """Return the requests that the lines are fitted to: series, prompt_tokens, cached_tokens, ttft_ms, order."""
    rows = [
        {"series": name, "prompt_tokens": r["prompt_tokens"], "cached_tokens": r.get("cached_tokens"),
         "ttft_ms": float(r["ttft_ms"]), "order": r.get("order")}
        for name in LINES
        for r in data.probes(SERIES[name][0], "length", SERIES[name][1])
        if r.get("prompt_tokens")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def bands(found: Fit) -> pd.DataFrame:
    """Return the mean lines of both arms with their intervals."""
    frames = [
        pd.DataFrame({"series": name, "prompt_tokens": b.tokens, "mean_ms": b.mean_ms, "low_ms": b.low_ms,
                      "high_ms": b.high_ms})
        for name in ("off", "on")
        if (b := lines(found)[name].band) is not None
    ]  # fmt: skip
    numbers = dict.fromkeys(("prompt_tokens", "mean_ms", "low_ms", "high_ms"), pd.Series(dtype=float))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"series": pd.Series(dtype=str), **numbers})


def _picture(ctx: Context) -> Picture | None:
    data = points(ctx.data)
    if data.empty:
        return None
    slopes = {name: ctx.say("figure.length.slope", slope=ctx.cell(f"slope_{name}_ms_per_1k"), arm=ctx.words.arm(name))
              for name in ("off", "on") if ctx.has(f"slope_{name}_ms_per_1k")}  # fmt: skip
    return figures.lines(data, bands(fitted(ctx.data)), ctx.words, slopes)


def _reduction(ctx: Context) -> Picture | None:
    rows = [
        {"prompt_tokens": round(r.tokens), "reduction": r.reduction.value,
         "low": np.nan if r.reduction.low is None else r.reduction.low,
         "high": np.nan if r.reduction.high is None else r.reduction.high}
        for r in fitted(ctx.data).by_length
        if r.reduction.value is not None
    ]  # fmt: skip
    return figures.reduction(pd.DataFrame(rows), ctx.words) if rows else None


def _table(ctx: Context) -> Table | None:
    count = int(ctx.number("lengths") or 0)
    rows = tuple(
        (
            ctx.cell(f"length_{i}_tokens"),
            *(ctx.ci(f"length_{i}_{c}") for c in ("off_ms", "on_ms", "saved_ms", "reduction")),
        )
        for i in range(1, count + 1)
    )
    return Table(("prompt_tokens", "ttft_off", "ttft_on", "saved", "reduction"), rows) if rows else None


def _fit_table(ctx: Context) -> Table | None:
    rows = []
    for name, line in lines(fitted(ctx.data)).items():
        if not line.n:
            continue
        level = ctx.ci(f"intercept_{name}_ms")
        if line.intercept.status == "curvature":
            level = f"{level}: {ctx.words('length.not_fixed')}"
        rows.append((ctx.words.arm(name), ctx.cell(f"length_{name}_n"), ctx.ci(f"slope_{name}_ms_per_1k"), level,
                     ctx.cell(f"r2_{name}"), ctx.cell(f"lack_of_fit_{name}_p")))  # fmt: skip
    return Table(("line", "n", "slope", "intercept", "r2", "lack_of_fit"), tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    found = fitted(ctx.data)
    if not found.off.n and not found.on.n:
        return ctx.say("length.none")
    if not found.off.n or not found.on.n:
        return ctx.say("length.one_arm", arm=ctx.words.arm("off" if found.off.n else "on"))
    if not ctx.has("slope_reduction"):
        return joined(ctx.say("length.no_slope"), _longest(ctx))
    reduction = found.slope_reduction
    helps = reduction.low is not None and reduction.low > 0
    return joined(ctx.say("length.slopes" if helps else "length.no_gain"), _longest(ctx))


def _longest(ctx: Context) -> str:
    if not ctx.has("ttft_reduction_longest"):
        return ctx.say("length.no_pair")
    saved = fitted(ctx.data).by_length[-1].saved_ms
    return ctx.say("length.longest" if saved.low is not None and saved.low > 0 else "length.longest_unclear")


def _fit_sentences(ctx: Context) -> str:
    said = []
    for name in ("off", "on"):
        line = lines(fitted(ctx.data))[name]
        if line.intercept.status == "curvature":
            said.append(ctx.say(f"length.curved_{name}"))
        elif ctx.has(f"intercept_{name}_ms"):
            said.append(ctx.say(f"length.intercept_{name}"))
        if line.drift.excludes(0):
            said.append(ctx.say(f"length.drift_{name}"))
    if ctx.claims["intercept_difference_ms"].ci and fitted(ctx.data).intercept_difference.status == "ok":
        apart = fitted(ctx.data).intercept_difference.excludes(0)
        said.append(ctx.say("length.intercepts_differ" if apart else "length.intercepts_equal"))
    return joined(*said)


def _pays(ctx: Context) -> str:
    if not ctx.has("lengths"):
        return ctx.say("pays.unknown")
    gained = affinity.kept(ctx)
    engines = ctx.say("pays.engines", **gained) if gained else ""
    if not ctx.has("pays_from_tokens"):
        return joined(ctx.say("pays.unfound" if unfound(ctx.data) else "pays.never"), engines)
    return joined(ctx.say("pays.from"), ctx.say("pays.half") if ctx.has("halves_from_tokens") else "", engines)


SECTION = Section(
    claim,
    {"length": _picture, "reduction": _reduction},
    {"length": _table, "fit": _fit_table},
    {"length": _sentences, "fit": _fit_sentences, "pays": _pays},
)
