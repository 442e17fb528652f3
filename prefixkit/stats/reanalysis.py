"""The two reference articles, analysed again from the table that they print."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from prefixkit.stats.estimate import Estimate, number
from prefixkit.stats.line import PER_1K
from prefixkit.stats.lines import Fit, fit
from prefixkit.stats.regression import Contrast

PRINTED = {"off": (38.1, 207.6), "on": (34.3, 6.9)}  # intercept ms, slope ms per 1,000 tokens, as printed
PRINTED_SLOPE_REDUCTION = 0.967
PRINTED_SWITCH_REDUCTION = 0.185
SYSTEM_TOKENS = 1488
QUESTIONS = 8
TOKENS_SAVED = 11_904


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A printed line against the printed rows: what it misses them by."""

    arm: str
    intercept_ms: float
    slope_ms_per_1k: float
    misses_ms: tuple[float, ...]

    @property
    def worst_ms(self) -> float:
        """Return the largest miss in size."""
        return max(self.misses_ms, key=abs)


@dataclass(frozen=True, slots=True, eq=False)
class Reanalysis:
    """The refit, the printed lines, the real prefix lengths, and what the printed numbers can and cannot decide."""

    rows: tuple[dict[str, Any], ...]
    fit: Fit
    printed: tuple[PrintedLine, ...]
    tokens_per_unit: float
    fixed_tokens: float
    real_prefixes: tuple[float, ...]
    switch_reduction: float
    predicted_switch_ms: Estimate
    measured_switch_ms: float
    first_request_was_warm: bool

    @property
    def findings(self) -> list[str]:
        """Return the findings as sentences."""
        return _findings(self)


def reference_rows() -> tuple[dict[str, Any], ...]:
    """Return the facts of the reference table, numbers as numbers."""
    text = (files("prefixkit") / "data" / "reference_rtx3090.csv").read_text("utf-8")
    return tuple(
        {
            k: float(v) if k in ("prompt_tokens", "repeats", "off_ms", "on_ms", "hit_rate") and v else v
            for k, v in r.items()
        }
        for r in csv.DictReader(text.splitlines())
    )


def reference_records() -> list[dict[str, Any]]:
    """Return the five rows as probe records: a mean of five repeats stands as one request of each arm."""
    return [
        {"record": "probe", "schema": 1, "arm": arm, "experiment": "length", "phase": phase, "error": None,
         "prompt_tokens": row["prompt_tokens"], "ttft_ms": row[f"{arm}_ms"]}
        for row in reference_rows() if row["experiment"] == "length"
        for arm, phase in (("off", "cold"), ("on", "warm"))
    ]  # fmt: skip


def reanalyse() -> Reanalysis:
    """Refit the reference table and say what follows from it."""
    rows = reference_rows()
    lengths = [r for r in rows if r["experiment"] == "length"]
    switch = next(r for r in rows if r["experiment"] == "switch")
    tokens = np.array([r["prompt_tokens"] for r in lengths])
    nominal = np.array([float(r["condition"]) for r in lengths])
    refit = fit(reference_records())
    printed = tuple(
        PrintedLine(
            arm, a, b, tuple(float(v) for v in np.array([r[f"{arm}_ms"] for r in lengths]) - a - b * tokens / 1000)
        )
        for arm, (a, b) in PRINTED.items()
    )
    # A unit of 64 nominal tokens is repeated nominal/64 times; the rest of the prompt is fixed.
    per_unit, fixed = (float(v) for v in np.polyfit(nominal / 64, tokens, 1))
    return Reanalysis(
        rows, refit, printed, per_unit, fixed, tuple(float(v) for v in tokens - fixed),
        1 - switch["on_ms"] / switch["off_ms"], _predicted(refit), switch["off_ms"] - switch["on_ms"],
        TOKENS_SAVED >= QUESTIONS * SYSTEM_TOKENS,
    )  # fmt: skip


def _predicted(refit: Fit) -> Estimate:
    difference: Contrast = refit.off.slope_contrast().minus(refit.on.slope_contrast()).scaled(SYSTEM_TOKENS / PER_1K)
    return difference.estimate(n=10, unit="ms", method="slope difference x 1,488 tokens")


def _findings(a: Reanalysis) -> list[str]:
    off, on = a.printed
    lengths = [r for r in a.rows if r["experiment"] == "length"]
    missed = lengths[off.misses_ms.index(off.worst_ms)]["prompt_tokens"]
    nominal = [float(r["condition"]) for r in lengths]
    inside = "outside" if a.predicted_switch_ms.excludes(a.measured_switch_ms) else "inside"
    said = [
        f"Slopes hold: off {a.fit.off.slope}, on {a.fit.on.slope}, reduction {a.fit.slope_reduction}"
        f" (printed {PRINTED_SLOPE_REDUCTION:.1%}).",
        f"Intercepts are undecided: off {a.fit.off.intercept}, on {a.fit.on.intercept}, difference"
        f" {a.fit.intercept_difference}; the printed {off.intercept_ms} and {on.intercept_ms} ms are lines forced"
        f" through the first row, and the printed off line misses the row of {missed:,.0f} tokens by"
        f" {abs(off.worst_ms):.0f} ms.",
        f"Lengths are nominal: the repeated unit has {a.tokens_per_unit:.0f} tokens beside {a.fixed_tokens:.0f} fixed"
        f" ones, so the prefixes were {a.real_prefixes[0]:,.0f} to {a.real_prefixes[-1]:,.0f} tokens, not"
        f" {nominal[0]:,.0f} to {nominal[-1]:,.0f}.",
        f"Whole answers of 64 tokens were timed in the switch: {number(a.switch_reduction, 'fraction')} (printed"
        f" {PRINTED_SWITCH_REDUCTION:.1%}) is not a fall of TTFT.",
        f"The lines predict {a.predicted_switch_ms} saved by {SYSTEM_TOKENS:,} cached tokens;"
        f" {a.measured_switch_ms:,.0f} ms were measured ({inside} the interval).",
        "Means of five repeats carry no spread: noise by length, outliers, drift and lack of fit cannot be judged.",
    ]
    if a.first_request_was_warm:
        said.append(
            f"The first request was warm: {TOKENS_SAVED:,} tokens saved = {QUESTIONS} x {SYSTEM_TOKENS:,}; a cold start"
            f" of {QUESTIONS} requests can hit at most {(QUESTIONS - 1) / QUESTIONS:.1%}."
        )
    return said
