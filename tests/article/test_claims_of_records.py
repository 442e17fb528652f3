"""Claims recomputed from the records by plain numpy, and found in the rendered page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prefixkit.article import compute, load
from prefixkit.article.data import SETTINGS
from prefixkit.claims import text
from prefixkit.render import render_report

Probes = list[dict[str, Any]]


def read(folder: Path, arm: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{arm}.jsonl").read_text("utf-8").splitlines()]


def probes(records: list[dict[str, Any]], experiment: str, phase: str) -> Probes:
    return [r for r in records if r["record"] == "probe" and (r["experiment"], r["phase"]) == (experiment, phase)]


def column(rows: Probes, name: str) -> np.ndarray[Any, Any]:
    return np.array([float(r[name]) for r in rows])


def slope(rows: Probes) -> float:
    """Return ms per 1,000 tokens by least squares beside a linear change over the run."""
    tokens, order = column(rows, "prompt_tokens"), np.linspace(-0.5, 0.5, len(rows))
    design = np.column_stack([np.ones(len(rows)), tokens, order, order * (tokens - tokens.mean())])
    return float(np.linalg.lstsq(design, column(rows, "ttft_ms"), rcond=None)[0][1] * 1000)


@pytest.fixture(scope="module")
def folder(case: Callable[[str], Path]) -> Path:
    return case("everything")


def test_the_named_claims_equal_plain_arithmetic_on_the_records(folder: Path) -> None:
    claims = compute(load(folder))
    on, off, cloud = (read(folder, arm) for arm in ("on", "off", "cloud"))
    slopes = {"on": slope(probes(on, "length", "warm")), "off": slope(probes(off, "length", "cold"))}
    longest = [column([r for r in rows if r["target_tokens"] == 3072], "ttft_ms").mean()
               for rows in (probes(off, "length", "cold"), probes(on, "length", "warm"))]  # fmt: skip
    warm = probes(on, "switch", "warm")
    everything = probes(on, "switch", "cold") + warm
    gateway = [r["ttft_ms"] for r in cloud if r["record"] == "probe" and r["experiment"] == "switch"]
    later = [r for r in probes(off, "switch", "cold") if r["condition"]["question"] > 1]
    expected = {
        "slope_on_ms_per_1k": slopes["on"],
        "slope_off_ms_per_1k": slopes["off"],
        "slope_reduction": 1 - slopes["on"] / slopes["off"],
        "ttft_reduction_longest": 1 - longest[1] / longest[0],
        "hit_rate_switch": column(warm, "cached_tokens").sum() / column(warm, "prompt_tokens").sum(),
        "hit_rate_switch_all": column(everything, "cached_tokens").sum() / column(everything, "prompt_tokens").sum(),
        "tokens_saved_switch": column(everything, "cached_tokens").sum(),
        "cloud_ttft_p50_ms": np.median(gateway),
        "switch_ttft_on_ms": column(warm, "ttft_ms").mean(),
        "switch_ttft_saved_ms": column(later, "ttft_ms").mean() - column(warm, "ttft_ms").mean(),
        "tpot_on_ms": ((column(everything, "e2e_ms") - column(everything, "ttft_ms")) / 63).mean(),
    }
    for tokens in (32, 512):
        whole = [{r["condition"]["question"]: r["e2e_ms"] for r in probes(rows, "outputs", phase)
                  if r["completion_tokens"] == tokens} for rows, phase in ((off, "cold"), (on, "warm"))]  # fmt: skip
        both = np.array([[side[question] for side in whole] for question in sorted(whole[0])])
        expected[f"answer_{tokens}_measured_saved_ms"] = (both[:, 0] - both[:, 1]).mean()
        expected[f"answer_{tokens}_measured_reduction"] = 1 - both[:, 1].mean() / both[:, 0].mean()
        expected[f"answer_{tokens}_measured_n"] = len(both)
    for name, value in expected.items():
        # Means by length have the linear change over the run taken out, which plain means keep.
        near = 1e-3 if name == "ttft_reduction_longest" else 1e-6
        assert claims.number(name) == pytest.approx(float(value), rel=near), name
    for name in ("intercept_on_ms", "intercept_off_ms", "control_minus_off_ms"):
        assert claims[name].ci and claims[name].ci[0] < claims[name].value < claims[name].ci[1], name


def test_claims_are_a_pure_function_of_the_records(folder: Path) -> None:
    first, second = (compute(load(folder)) for _ in range(2))
    assert {n: c.record() for n, c in first.items()} == {n: c.record() for n, c in second.items()}


def test_published_gzipped_records_give_the_same_claims(folder: Path, tmp_path: Path) -> None:
    import gzip

    for file in folder.glob("*.jsonl"):
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    (tmp_path / SETTINGS).write_bytes((folder / SETTINGS).read_bytes())
    plain, zipped = compute(load(folder)), compute(load(tmp_path))
    assert {n: c.record() for n, c in plain.items()} == {n: c.record() for n, c in zipped.items()}


def test_superseded_and_failed_requests_change_no_number(tmp_path: Path) -> None:
    from tests.fakes import records

    arms = [records.local(name) for name in ("off", "on")]
    before = compute(load(records.write(tmp_path / "a", *arms)))
    arms[1].probe("length", "warm", 3110, 0, target_tokens=3072, superseded=True, ttft_ms=1e6, cell="length/3072/r9")
    arms[1].fail("length", "warm", "timeout", "no answer", target_tokens=3072)
    after = compute(load(records.write(tmp_path / "b", *arms)))
    changed = {n for n in before if before[n].record() != after[n].record()}
    assert {n for n in changed if not n.startswith(("count_", "probes_", "run_"))} == set()
    assert after.number("probes_failed") == 1 and after.number("probes_superseded") == 1


def test_the_page_shows_the_claims_and_writes_figures_with_their_data(folder: Path, tmp_path: Path) -> None:
    render_report(folder, tmp_path, lang="en")
    claims = compute(load(folder))
    assert json.loads((tmp_path / "claims.json").read_text("utf-8")) == {n: c.record() for n, c in claims.items()}
    page = html.unescape(re.sub(r"<[^>]+>", "", (tmp_path / "report.html").read_text("utf-8"))).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    names = ("slope_off_ms_per_1k", "slope_reduction", "ttft_reduction_longest", "hit_rate_switch", "intercept_off_ms",
             "cloud_ttft_p50_ms", "hit_rate_switch_all", "control_minus_off_ms", "tokens_saved_switch")  # fmt: skip
    for name in names:
        assert text(claims[name]).replace("\N{NO-BREAK SPACE}", " ") in page, name
    for suffix in ("svg", "png", "csv"):
        assert (tmp_path / "figures" / f"length.{suffix}").stat().st_size > 1000
