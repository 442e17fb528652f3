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
from scipy import stats
from statsmodels.regression.linear_model import OLS

from prefixkit.stats import leading_contrast
from prefixkit.stats.compare import aa_differs
from prefixkit.stats.estimate import Estimate
from prefixkit.stats.line import Line, fit_line
from prefixkit.stats.lines import by_length, line_difference, slope_reduction
from prefixkit.stats.rows import make_rows
from prefixkit.stats.steps import steps
from tests.bench import stat_stopping
from tests.bench.simulate import LENGTHS, TRUTH, errors

REPEATS = 5
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
              "mean line off, middle", "TTFT reduction, longest", "slope reduction, warm against control")  # fmt: skip
BESIDE = ("drift off", "chunk step off", "block step on")
CHUNK, BLOCK = 2048, 128
USUAL = ("slope off, HC3 with t(n - 2)", "TTFT reduction, longest, percentile bootstrap")
BESIDE_TEXT = (
    "Beside the line: drift over the run at equal length, and steps at chunks of a prefill (2,048 tokens) and blocks",
    "of the cache (128). A step is a contrast between few lengths, and noise may differ between lengths: its interval",
    "rests on the few repeats of those lengths, so it is wider than the ideal, which knows the noise.",
)
STOPPING_TEXT = (
    "After a run that stopped by itself (`length.precision: 0.02`, at most 20 rounds, noise of "
    f"{stat_stopping.NOISE_LONGEST:g} ms at the longest prompt):",
)
Results = dict[str, dict[str, dict[str, float]]]
ALARMS = ("slopes differ", "intercepts differ", "runs differ (either)", "lack of fit off", "intercept called not fixed")


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


def simulate_pairs(regime: str, rng: np.random.Generator) -> Estimate:
    """Draw the visits of arm on, each a warm and a control request; return the slope reduction of the pairs."""
    visits = [(r, x) for r in range(REPEATS) for x in rng.permutation(LENGTHS)]
    tokens = np.array([x for _, x in visits])
    base = TRUTH["on"][0]
    sides = {}
    for phase, arm in (("warm", "on"), ("control", "off")):
        mean = base + TRUTH[arm][1] * tokens / 1000
        sides[phase] = mean + errors(regime, mean, tokens, NOISE["on"], rng)
    records = [
        {"record": "probe", "arm": "on", "experiment": "length", "phase": phase, "error": None, "order": 2 * i + k,
         "prompt_tokens": x, "target_tokens": x, "condition": {"round": r}, "ttft_ms": sides[phase][i]}
        for i, (r, x) in enumerate(visits) for k, phase in enumerate(sides)
    ]  # fmt: skip
    return leading_contrast(records).slope_reduction


def true_drift(regime: str) -> float:
    """Return by how much arm off changes over a run, at the mean length."""
    if regime.startswith("additive"):
        return 10 * NOISE["off"]
    level, slope = TRUTH["off"]
    return 0.4 * (level + slope * float(LENGTHS.mean()) / 1000) if regime.startswith("proportional") else 0.0


def bootstrap_reduction(on: Line, off: Line, rng: np.random.Generator) -> tuple[bool, float]:
    """Return coverage and half width of the percentile bootstrap of the longest prompt's reduction, for comparison."""
    assert on.rows is not None and off.rows is not None
    a, b = (line.rows.ttft_ms[line.rows.tokens == LENGTHS[-1]] for line in (on, off) if line.rows)
    draws = 1 - rng.choice(a, (999, len(a))).mean(axis=1) / rng.choice(b, (999, len(b))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    truth = [level + slope * LENGTHS[-1] / 1000 for level, slope in (TRUTH["on"], TRUTH["off"])]
    return bool(low <= 1 - truth[0] / truth[1] <= high), float(high - low) / 2


def plain_hc3(line: Line) -> tuple[bool, float]:
    """Return whether plain HC3 with t(n-2) holds the true slope, and its half width, for comparison."""
    assert line.rows is not None
    x = np.column_stack([np.ones(line.n), line.rows.tokens / 1000])
    fitted = OLS(line.rows.ttft_ms, x).fit()
    half = stats.t.ppf(0.975, line.n - 2) * fitted.HC3_se[1]
    return bool(abs(fitted.params[1] - TRUTH["off"][1]) <= half), float(half)


def one_set(
    regime: str, rng: np.random.Generator, ordered: bool
) -> tuple[dict[str, tuple[Estimate, float]], dict[str, bool], dict[str, tuple[bool, float]]]:
    """Simulate one data set; return each interval with its truth, the A/A alarms, and the usual methods."""
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
    borders = steps(off, on, chunk_tokens=CHUNK, block_size=BLOCK)
    found |= {
        "drift off": (off.drift, true_drift(regime)),
        "chunk step off": (borders.chunk, 0.0),
        "block step on": (borders.block, 0.0),
    }
    alarms = {
        "slopes differ": line_difference(off, twin, None).excludes(0),
        "intercepts differ": line_difference(off, twin, 0.0).excludes(0),
        "runs differ (either)": aa_differs(off, twin),
        "intercept called not fixed": off.intercept.status == "curvature",
        "lack of fit off": off.lack_of_fit.decision == "line does not fit",
    }
    if ordered:
        truth = 1 - TRUTH["on"][1] / TRUTH["off"][1]
        found["slope reduction, warm against control"] = (simulate_pairs(regime, rng), truth)
    return found, alarms, {USUAL[0]: plain_hc3(off), USUAL[1]: bootstrap_reduction(on, off, rng)}


def coverage(regime: str, sets: int, *, ordered: bool = True, seed: int = 20250101) -> dict[str, dict[str, float]]:
    """Return coverage and mean width over the ideal for each quantity, and the rate of each false alarm."""
    rng = np.random.default_rng([seed, zlib.crc32(regime.encode()), ordered])
    hits: dict[str, list[bool]] = {q: [] for q in (*QUANTITIES, *BESIDE)}
    widths: dict[str, list[float]] = {q: [] for q in hits}
    values: dict[str, list[float]] = {q: [] for q in hits}
    alarms: dict[str, list[bool]] = {a: [] for a in ALARMS}
    usual: dict[str, list[tuple[bool, float]]] = {u: [] for u in USUAL}
    for _ in range(sets):
        found, rang, others = one_set(regime, rng, ordered)
        for name, (estimate, truth) in found.items():
            hits[name].append(not estimate.excludes(truth) and estimate.low is not None)
            widths[name].append(estimate.half_width or np.inf)
            values[name].append(estimate.value or np.nan)
        for name, alarm in rang.items():
            alarms[name].append(alarm)
        for name, other in others.items():
            usual[name].append(other)
    result = {
        q: {"coverage": float(np.mean(hits[q])), "width": float(np.mean(widths[q]) / (1.96 * np.std(values[q])))}
        for q in hits
        if hits[q]
    }
    result |= {a: {"alarm": float(np.mean(alarms[a]))} for a in ALARMS}
    for name, of in zip(USUAL, ("slope off", "TTFT reduction, longest"), strict=True):
        ideal = 1.96 * float(np.std(values[of]))
        result[name] = {
            "coverage": float(np.mean([hit for hit, _ in usual[name]])),
            "width": float(np.mean([width for _, width in usual[name]])) / ideal,
        }
    return result


def table(results: Results, stopping: Results, sets: int) -> str:
    """Return the results as a Markdown page: ours, beside the line, after a stop, the usual methods, false alarms."""
    lines = [
        "# Coverage of the 95 % intervals",
        "",
        f"{sets:,} simulated data sets a regime: 5 lengths x 5 repeats, random order in each round. Monte Carlo error",
        f"about {100 * np.sqrt(0.95 * 0.05 / sets):.1f} points. Each cell: coverage, and in brackets the mean width"
        " over the ideal (1.96",
        "standard deviations of the estimate itself). `python -m tests.bench.stat_coverage` writes this file.",
        "",
    ]

    def cells(names: tuple[str, ...], key: str, rows: Results = results) -> None:
        lines.extend(["| regime | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"])
        for regime, found in rows.items():
            row = [_cell(found.get(name), key) for name in names]
            lines.append(f"| {regime} | " + " | ".join(row) + " |")

    cells(QUANTITIES, "coverage")
    lines += ["", *BESIDE_TEXT, ""]
    cells(BESIDE, "coverage")
    lines += ["", *STOPPING_TEXT, ""]
    cells(stat_stopping.QUANTITIES, "coverage", stopping)
    lines += ["", "Rounds that were made, and runs that reached the cap:", ""]
    lines += [
        f"- {regime}: {found['rounds']['mean']:.1f} on average, {found['rounds']['at the cap']:.0%} at the cap"
        for regime, found in stopping.items()
    ]
    lines += ["", "The usual methods on the same data, not used:", ""]
    cells(USUAL, "coverage")
    lines += ["", "False alarms at 5 %: the same arm measured twice (A/A), and a straight line called crooked.", ""]
    cells(ALARMS, "alarm")
    return "\n".join(lines) + "\n"


def _cell(found: dict[str, float] | None, key: str) -> str:
    if found is None:
        return ""
    width = f" ({found['width']:.2f})" if "width" in found else ""
    return f"{100 * found[key]:.1f} %{width}"


def main() -> None:
    """Simulate every regime, with the order recorded and with the order of the records alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    jobs = [(regime, ordered) for ordered in (True, False) for regime in REGIMES]
    with ProcessPoolExecutor(2) as pool:
        after = pool.map(partial(stat_stopping.coverage, sets=args.sets), stat_stopping.REGIMES)
        done = list(pool.map(partial(_job, args.sets), jobs))
        stopping = dict(zip(stat_stopping.REGIMES, after, strict=True))
    results = {
        regime + ("" if ordered else "; order not recorded"): r for (regime, ordered), r in zip(jobs, done, strict=True)
    }
    everything = {"sets": args.sets, "regimes": results, "stopping": stopping}
    (args.out / "stat_coverage.json").write_text(json.dumps(everything, indent=1) + "\n")
    text = table(results, stopping, args.sets)
    (args.out / "stat_coverage.md").write_text(text)
    print(text)


def _job(sets: int, job: tuple[str, bool]) -> dict[str, dict[str, float]]:
    return coverage(job[0], sets, ordered=job[1])


if __name__ == "__main__":
    main()
