"""This run beside another one: both arms' lines, slope ratios, the first token at the longest length of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from prefixkit import paths
from prefixkit.article.data import Data, load, resolve
from prefixkit.article.length import SERIES, bands, points
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.export.show import literal
from prefixkit.figures import beside as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record
from prefixkit.stats import Estimate, Fit, compare, fit
from prefixkit.stats.compare import MUST_EQUAL, RunComparison
from prefixkit.stats.ratio import mean_contrast, mean_estimate, reduction
from prefixkit.stats.regression import Contrast

ARMS = ("off", "on")
NEAR = 0.01
LEFT_OUT = ("engine_args", "env")


@lru_cache(maxsize=8)
def other(data: Data) -> Data | None:
    """Return the run that this one is set beside, None where none is named; raises RecordsError where it is gone."""
    name = data.settings.compare
    if not name:
        return None
    return load(paths.PUBLISHED / name if (paths.PUBLISHED / name).is_dir() else resolve(name))


def _records(data: Data) -> list[Record]:
    return [r for arm in ARMS for r in data.arm(arm).records]


@lru_cache(maxsize=8)
def compared(data: Data) -> RunComparison | None:
    """Return the comparison of this run (second) with the other (first)."""
    there = other(data)
    return compare(_records(there), _records(data)) if there else None


def ratio(there: Contrast | None, here: Contrast | None, n: int) -> Estimate:
    """Return there over here with Fieller's interval."""
    if there is None or here is None:
        return Estimate(None, unit="x")
    less = reduction(there, here, n=n)
    if less.value is None:
        return Estimate(None, unit="x", n=n, status=less.status, note=less.note)
    low, high = (None, None) if less.low is None or less.high is None else (1 - less.high, 1 - less.low)
    return Estimate(1 - less.value, low, high, n, "x", less.method, less.status, less.note)


def _slope(found: Fit, arm: str) -> Contrast | None:
    line = found.arms[arm]
    return line.slope_contrast() if line.has_interval else None


@lru_cache(maxsize=8)
def lengths(data: Data) -> tuple[float, ...]:
    """Return the prompt lengths that both runs measured in both arms, tokens of this run."""
    there = other(data)
    if there is None:
        return ()
    ours = sorted({float(r["prompt_tokens"]) for r in data.probes("off", "length", "cold")})
    return tuple(t for t in ours if all(len(_at(run, arm, t)) for run in (data, there) for arm in ARMS))


@lru_cache(maxsize=8)
def fits(data: Data) -> tuple[Fit, Fit]:
    """Return the fits of this run and of the other over the lengths of both: other lengths would bend the lines."""
    there, both = other(data), lengths(data)
    assert there
    mine, theirs = (
        fit([r for r in _records(run) if any(_near(r.get("prompt_tokens"), tokens) for tokens in both)])
        for run in (data, there)
    )
    return mine, theirs


def _near(value: object, tokens: float) -> bool:
    return isinstance(value, int | float) and abs(value - tokens) <= NEAR * tokens


def _at(data: Data, arm: str, tokens: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    series, phase = SERIES[arm]
    rows = data.probes(series, "length", phase)
    near = [r["ttft_ms"] for r in rows if _near(r.get("prompt_tokens"), tokens)]
    return np.array(near, dtype=float)


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the comparison; none where no other run is named."""
    there, verdict = other(data), compared(data)
    if there is None or verdict is None:
        return
    name = f"run {data.settings.compare}"
    claims.add("beside_name", data.settings.compare, "text", source="report.compare")
    claims.add("beside_status", verdict.status, "text", source=f"this run and {name}: run records")
    if verdict.status != "ok":
        return
    both = lengths(data)
    tokens = both[-1] if both else None
    claims.add("beside_lengths", len(both) or None, "count", source=f"this run and {name}: prompt lengths of both")
    claims.add("beside_longest_tokens", tokens, "tokens", source=f"this run and {name}: longest length of both")
    here, beside = fits(data)
    for arm in ARMS:
        for side, run, label in (("here", here, "this run"), ("there", beside, name)):
            source = f"{label}, {arm}: length probes of the lengths that both runs have"
            claims.estimate(f"beside_{side}_slope_{arm}_ms_per_1k", run.arms[arm].slope, "ms/1k", source)
        n = here.arms[arm].n + beside.arms[arm].n
        claims.estimate(f"beside_slope_ratio_{arm}", ratio(_slope(beside, arm), _slope(here, arm), n), "x",
                        f"{name} over this run, {arm}: slopes over the lengths of both, Fieller")  # fmt: skip
        mine, theirs = (_at(run, arm, tokens or 0) for run in (data, there))
        at = f"{arm}: length probes of about {tokens or 0:.0f} tokens"
        claims.estimate(f"beside_here_{arm}_ms", mean_estimate(mine), "ms", f"this run, {at}")
        claims.estimate(f"beside_there_{arm}_ms", mean_estimate(theirs), "ms", f"{name}, {at}")
        gap = ratio(mean_contrast(theirs), mean_contrast(mine), len(mine) + len(theirs))
        claims.estimate(f"beside_ttft_ratio_{arm}", gap, "x", f"{name} over this run, {at}")


def _picture(ctx: Context) -> Picture | None:
    there = other(ctx.data)
    if there is None or not ctx.has("beside_status") or ctx.claims["beside_status"].value != "ok":
        return None
    names = (ctx.words("beside.here"), ctx.words("beside.there"))
    marks, lines = [], []
    for run, data, found in zip(names, (ctx.data, there), fits(ctx.data), strict=True):
        if not (rows := points(data)).empty:
            marks.append(rows[rows["series"].isin(ARMS)].assign(run=run))
        if not (rows := bands(found)).empty:
            lines.append(rows.assign(run=run))
    if not marks or not lines:
        return None
    return figures.two_runs(pd.concat(marks, ignore_index=True), pd.concat(lines, ignore_index=True), ctx.words)


def _table(ctx: Context) -> Table | None:
    if not ctx.has("beside_status") or ctx.claims["beside_status"].value != "ok":
        return None
    rows = [
        (ctx.words("beside.here"), *(ctx.ci(f"beside_here_slope_{arm}_ms_per_1k") for arm in ARMS),
         *(ctx.ci(f"beside_here_{arm}_ms") for arm in ARMS)),
        (ctx.words("beside.there"), *(ctx.ci(f"beside_there_slope_{arm}_ms_per_1k") for arm in ARMS),
         *(ctx.ci(f"beside_there_{arm}_ms") for arm in ARMS)),
        (ctx.words("beside.ratio"), *(ctx.ci(f"beside_slope_ratio_{arm}") for arm in ARMS),
         *(ctx.ci(f"beside_ttft_ratio_{arm}") for arm in ARMS)),
    ]  # fmt: skip
    return Table(("run", "slope_off", "slope_on", "ttft_off", "ttft_on"), tuple(rows))


def _flat(data: Data) -> dict[str, str]:
    server: Mapping[str, Any] = data.params.get("server") or {}
    pairs: dict[str, str] = {}
    for part in LEFT_OUT:
        values = server.get(part) or {}
        if isinstance(values, Mapping):
            pairs |= {str(key): json.dumps(value) for key, value in values.items()}
    return pairs


def _differences(ctx: Context, there: Data, verdict: RunComparison) -> str:
    """Name what differs between the two runs: what the records say, then the server's arguments and variables."""
    here, beside = _flat(ctx.data), _flat(there)
    changed = {k: v for k, v in verdict.changed.items() if k not in (*MUST_EQUAL, "started_at")}
    changed |= {k: (beside.get(k), here.get(k)) for k in sorted({*here, *beside}) if here.get(k) != beside.get(k)}
    return _listed({key: (mine, theirs) for key, (theirs, mine) in changed.items()})


def _listed(pairs: Mapping[str, tuple[Any, Any]]) -> str:
    return "; ".join(
        f"`{key}`: {' / '.join(literal(str(v)) if v is not None else '–' for v in pair)}" for key, pair in pairs.items()
    )


def _sentences(ctx: Context) -> str:
    there, verdict = other(ctx.data), compared(ctx.data)
    if there is None or verdict is None:
        return ctx.say("beside.none")
    if verdict.status != "ok":
        pairs = {k: (mine, theirs) for k, (theirs, mine) in verdict.changed.items() if k in MUST_EQUAL}
        return ctx.say("beside.refused", what=_listed(pairs))
    what = _differences(ctx, there, verdict)
    said = [ctx.say("beside.intro"), ctx.say("beside.differ", what=what) if what else ctx.say("beside.alike")]
    for arm in ARMS:
        if ctx.has(f"beside_slope_ratio_{arm}"):
            said.append(ctx.say(f"beside.slope_{arm}"))
    if ctx.has("beside_longest_tokens", "beside_ttft_ratio_off", "beside_ttft_ratio_on"):
        said.append(ctx.say("beside.longest"))
    return joined(*said)


SECTION = Section(claim, {"beside": _picture}, {"beside": _table}, {"beside": _sentences})
