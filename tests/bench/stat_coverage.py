"""Simulate how often the 95 % intervals of `prefixkit.stats` hold the truth; write `stat_coverage.json` and `.md`.

    python -m tests.bench.stat_coverage [--sets 2000] [--out tests/bench]

Five lengths, five repeats, sent in rounds that each visit every length once in random order. The truth of a drifting
run is its mean over the run.
"""

from __future__ import annotations

import argparse
import json
import zlib
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS

from prefixkit.stats.compare import aa_differs
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.line import Line, fit_line
from prefixkit.stats.lines import by_length, line_difference, slope_reduction
from prefixkit.stats.rows import make_rows

Array = NDArray[np.float64]
LENGTHS = np.array([353.0, 681, 1337, 2649, 3961])
REPEATS = 5
TRUTH = {"off": (38.0, 207.6), "on": (35.0, 6.9)}  # intercept ms, slope ms per 1,000 tokens
NOISE = {"off": 6.0, "on": 2.0}
REGIMES = {
    "constant Gaussian noise": (0.93, 0.97),
    "noise growing with length": (0.93, 0.97),
    "heavy symmetric tails (t, 3 d.o.f.)": (0.93, 1.0),
    "2 % symmetric outliers (20 sd)": (0.93, 1.0),
    "additive drift (10 sd over the run)": (0.93, 0.97),
    "proportional drift (40 % over the run)": (0.93, 0.97),
}
QUANTITIES = ("slope off", "slope on", "intercept off", "intercept on", "slope reduction",
              "mean line off, middle", "TTFT reduction, longest")  # fmt: skip
ALARMS = ("slopes differ", "intercepts differ", "runs differ (either)", "lack of fit off", "intercept called not fixed")


def errors(regime: str, mean: Array, tokens: Array, sd: float, rng: np.random.Generator) -> Array:
    """Return the errors of one arm's requests, in the order they were sent."""
    normal = sd * rng.standard_normal(len(mean))
    time = np.linspace(-0.5, 0.5, len(mean))
    if regime.startswith("noise growing"):
        return normal * tokens / LENGTHS.mean()
    if regime.startswith("heavy"):
        return sd * rng.standard_t(3, len(mean))
    if regime.startswith("2 %"):
        return normal + (rng.random(len(mean)) < 0.02) * rng.choice([-1, 1], len(mean)) * 20 * sd
    if regime.startswith("additive"):
        return normal + 10 * sd * time
    if regime.startswith("proportional"):
        return normal + 0.4 * mean * time
    return normal


def simulate_arm(
    regime: str, arm: str, rng: np.random.Generator, *, ordered: bool = True, repeats: int = REPEATS
) -> Line:
    """Draw one arm's requests and fit its line."""
    tokens = np.concatenate([rng.permutation(LENGTHS) for _ in range(repeats)])
    level, slope = TRUTH[arm]
    mean = level + slope * tokens / 1000
    ttft = mean + errors(regime, mean, tokens, NOISE[arm], rng)
    order = ({"order": i} for i in range(len(tokens))) if ordered else ({} for _ in tokens)
    return fit_line(
        make_rows([{"prompt_tokens": x, "ttft_ms": y, **o} for x, y, o in zip(tokens, ttft, order, strict=True)]),
        arm,
        "cold",
    )


def plain_hc3(line: Line) -> tuple[bool, float]:
    """Return whether plain HC3 with t(n-2) holds the true slope, and its half width, for comparison."""
    assert line.rows is not None
    x = np.column_stack([np.ones(line.n), line.rows.tokens / 1000])
    fitted = OLS(line.rows.ttft_ms, x).fit()
    half = stats.t.ppf(0.975, line.n - 2) * fitted.HC3_se[1]
    return bool(abs(fitted.params[1] - TRUTH["off"][1]) <= half), float(half)


def one_set(
    regime: str, rng: np.random.Generator, ordered: bool
) -> tuple[dict[str, tuple[Estimate, float]], dict[str, bool], tuple[bool, float]]:
    """Simulate one data set; return each interval with its truth, the alarms of the A/A comparison, and plain HC3."""
    off, on, twin = (simulate_arm(regime, arm, rng, ordered=ordered) for arm in ("off", "on", "off"))
    means = {arm: level + slope * LENGTHS / 1000 for arm, (level, slope) in TRUTH.items()}
    assert off.rows is not None
    found = {
        "slope off": (off.slope, TRUTH["off"][1]),
        "slope on": (on.slope, TRUTH["on"][1]),
        "intercept off": (off.intercept, TRUTH["off"][0]),
        "intercept on": (on.intercept, TRUTH["on"][0]),
        "slope reduction": (slope_reduction(on, off), 1 - TRUTH["on"][1] / TRUTH["off"][1]),
        "mean line off, middle": (off.predict(LENGTHS[2]), means["off"][2]),
        "TTFT reduction, longest": (by_length(on, off)[-1].reduction, 1 - means["on"][-1] / means["off"][-1]),
    }
    alarms = {
        "slopes differ": line_difference(off, twin, None).excludes(0),
        "intercepts differ": line_difference(off, twin, 0.0).excludes(0),
        "runs differ (either)": aa_differs(off, twin),
        "intercept called not fixed": off.intercept.status == "curvature",
        "lack of fit off": off.lack_of_fit.decision == "line does not fit",
    }
    return found, alarms, plain_hc3(off)


def coverage(regime: str, sets: int, *, ordered: bool = True, seed: int = 20250101) -> dict[str, dict[str, float]]:
    """Return coverage and mean width over the ideal for each quantity, and the rate of each false alarm."""
    rng = np.random.default_rng([seed, zlib.crc32(regime.encode()), ordered])
    hits: dict[str, list[bool]] = {q: [] for q in QUANTITIES}
    widths: dict[str, list[float]] = {q: [] for q in QUANTITIES}
    values: dict[str, list[float]] = {q: [] for q in QUANTITIES}
    alarms: dict[str, list[bool]] = {a: [] for a in ALARMS}
    hc3: list[tuple[bool, float]] = []
    for _ in range(sets):
        found, rang, usual = one_set(regime, rng, ordered)
        for name, (estimate, truth) in found.items():
            hits[name].append(not estimate.excludes(truth) and estimate.low is not None)
            widths[name].append(estimate.half_width or np.inf)
            values[name].append(estimate.value or np.nan)
        for name, alarm in rang.items():
            alarms[name].append(alarm)
        hc3.append(usual)
    result = {
        q: {"coverage": float(np.mean(hits[q])), "width": float(np.mean(widths[q]) / (1.96 * np.std(values[q])))}
        for q in QUANTITIES
    }
    result |= {a: {"alarm": float(np.mean(alarms[a]))} for a in ALARMS}
    sd = float(np.std(values["slope off"]))
    result["slope off, plain HC3"] = {
        "coverage": float(np.mean([hit for hit, _ in hc3])), "width": float(np.mean([w for _, w in hc3]) / (1.96 * sd))
    }  # fmt: skip
    return result


def table(results: dict[str, dict[str, dict[str, float]]], sets: int) -> str:
    """Return the results as a Markdown table."""
    names = [*QUANTITIES, "slope off, plain HC3"]
    lines = [
        "# Coverage of the 95 % intervals",
        "",
        f"{sets:,} simulated data sets a regime (5 lengths x 5 repeats, random order in each round); Monte Carlo error about"
        f" {100 * np.sqrt(0.95 * 0.05 / sets):.1f} points. Each cell: coverage, and in brackets the mean width over the ideal",
        "(1.96 standard deviations of the estimate itself). `python -m tests.bench.stat_coverage` writes this file.",
        "",
        "| regime | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for regime, cells in results.items():
        row = [f"{100 * cells[q]['coverage']:.1f} % ({cells[q]['width']:.2f})" for q in names]
        lines.append(f"| {regime} | " + " | ".join(row) + " |")
    lines += ["", "False alarms when the same arm is measured twice (A/A), and of the lack-of-fit test:", ""]
    lines += ["| regime | " + " | ".join(ALARMS) + " |", "|---" * (len(ALARMS) + 1) + "|"]
    for regime, cells in results.items():
        lines.append(f"| {regime} | " + " | ".join(f"{100 * cells[a]['alarm']:.1f} %" for a in ALARMS) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate every regime, with the order recorded and with the order of the records alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    jobs = [(regime, ordered) for ordered in (True, False) for regime in REGIMES]
    with ProcessPoolExecutor(2) as pool:
        done = list(pool.map(partial(_job, args.sets), jobs))
    results = {
        regime + ("" if ordered else "; order not recorded"): r for (regime, ordered), r in zip(jobs, done, strict=True)
    }
    (args.out / "stat_coverage.json").write_text(json.dumps({"sets": args.sets, "regimes": results}, indent=1) + "\n")
    text = table(results, args.sets)
    (args.out / "stat_coverage.md").write_text(text)
    print(text)


def _job(sets: int, job: tuple[str, bool]) -> dict[str, dict[str, float]]:
    return coverage(job[0], sets, ordered=job[1])


if __name__ == "__main__":
    main()
