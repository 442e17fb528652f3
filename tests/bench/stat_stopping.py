"""Runs that stop by themselves (`length.precision`): do the intervals made after the stop still hold the truth?

Both arms make rounds of five lengths, twenty at most, until `narrow_enough` says that the reduction at the longest
prompt is known to +-2 points. The noise at that length is such that most runs stop after many looks, which is where the
stop does most harm: an interval looks narrow when the noise happens to look small. Every request takes three seconds
more than its tokens need, so that no error makes a time negative (which would be left out).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from prefixkit.stats import Estimate, fit_line, leading_contrast, narrow_enough
from prefixkit.stats.lines import by_length, slope_reduction
from prefixkit.stats.rows import length_rows
from tests.bench.simulate import LENGTHS, TRUTH, errors

PRECISION = 0.02
CAP = 20
NOISE_LONGEST = 105.0  # ms
LEVEL_MS = 3000.0
REGIMES = {
    "constant Gaussian noise": (0.93, 0.97),
    "noise growing with length": (0.93, 0.97),
    "heavy symmetric tails (t, 3 d.o.f.)": (0.93, 1.0),
    "2 % symmetric outliers (20 sd)": (0.93, 1.0),
    "additive drift (10 sd over the run)": (0.93, 0.97),
}
QUANTITIES = ("slope reduction", "slope reduction, warm against control", "slope off", "slope on",
              "TTFT reduction, longest", "TTFT reduction, longest, warm against control")  # fmt: skip
Records = list[dict[str, Any]]


def rounds(regime: str, arm: str, sd: float, rng: np.random.Generator) -> list[Records]:
    """Return the records of each round up to the cap."""
    tokens = np.concatenate([rng.permutation(LENGTHS) for _ in range(CAP)])
    phases = ("cold", "warm", "control") if arm == "on" else ("cold",)
    times = {}
    for phase in phases:
        level, slope = TRUTH["on" if phase == "warm" else "off"]
        mean = LEVEL_MS + level + slope * tokens / 1000
        times[phase] = mean + errors(regime, mean, tokens, sd, rng)
    made: list[Records] = [[] for _ in range(CAP)]
    for i, x in enumerate(tokens.tolist()):
        number = i // len(LENGTHS)
        made[number] += [
            {"record": "probe", "arm": arm, "experiment": "length", "phase": phase, "error": None, "prompt_tokens": x,
             "target_tokens": x, "ttft_ms": times[phase][i], "order": 3 * i + k, "condition": {"round": number}}
            for k, phase in enumerate(phases)
        ]  # fmt: skip
    return made


def stopped(made: list[Records]) -> tuple[Records, int]:
    """Return the records that a run would have when it stops, and its rounds."""
    records: Records = []
    for number, found in enumerate(made):
        if narrow_enough(records, PRECISION):
            return records, number
        records += found
    return records, CAP


def one_run(regime: str, sd: float, rng: np.random.Generator) -> tuple[dict[str, tuple[Estimate, float]], int]:
    """Simulate one run of both arms; return each interval with its truth, and the rounds of arm on."""
    (off, _), (on, made) = (stopped(rounds(regime, arm, sd, rng)) for arm in ("off", "on"))
    rows, pairs = length_rows(off + on), leading_contrast(on)
    cold, warm = fit_line(rows["off", "cold"], "off", "cold"), fit_line(rows["on", "warm"], "on", "warm")
    slopes = 1 - TRUTH["on"][1] / TRUTH["off"][1]
    longest = {arm: LEVEL_MS + level + slope * LENGTHS[-1] / 1000 for arm, (level, slope) in TRUTH.items()}
    found = {
        "slope reduction": (slope_reduction(warm, cold), slopes),
        "slope reduction, warm against control": (pairs.slope_reduction, slopes),
        "slope off": (cold.slope, TRUTH["off"][1]),
        "slope on": (warm.slope, TRUTH["on"][1]),
    }
    if not regime.startswith("additive"):  # there the truth at one length depends on when the run stopped
        reduction = 1 - longest["on"] / longest["off"]
        found["TTFT reduction, longest"] = (by_length(warm, cold)[-1].reduction, reduction)
        found["TTFT reduction, longest, warm against control"] = (pairs.by_length[-1].reduction, reduction)
    return found, made


def coverage(regime: str, sets: int, *, longest: float = NOISE_LONGEST, seed: int = 20250102) -> dict[str, Any]:
    """Return the coverage of each interval after the stop, and how many rounds were made."""
    rng = np.random.default_rng([seed, zlib.crc32(regime.encode()), int(10 * longest)])
    sd = longest * LENGTHS.mean() / LENGTHS[-1] if regime.startswith("noise growing") else longest
    hits: dict[str, list[bool]] = {}
    made = []
    for _ in range(sets):
        found, number = one_run(regime, sd, rng)
        made.append(number)
        for name, (estimate, truth) in found.items():
            hits.setdefault(name, []).append(estimate.low is not None and not estimate.excludes(truth))
    return {
        **{name: {"coverage": float(np.mean(hit))} for name, hit in hits.items()},
        "rounds": {"mean": float(np.mean(made)), "at the cap": float(np.mean(np.array(made) == CAP))},
    }
