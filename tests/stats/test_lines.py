"""`fit`: what enters, what it finds, and what it says of data that cannot be fitted."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import prefixkit
from prefixkit.stats import Estimate, Line, fit
from tests.stats.simulated import LENGTHS, probe, run

DEGENERATE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no records": ([], "empty"),
    "one request": ([probe("off", "cold", 500, 90.0)], "one-length"),
    "one length": ([probe("off", "cold", 500, 90.0 + i) for i in range(7)], "one-length"),
    "one length with a few tokens of jitter": (
        [probe("off", "cold", 500 + i, 90.0 + i) for i in range(7)],
        "one-length",
    ),
    "two points": ([probe("off", "cold", 500, 90.0), probe("off", "cold", 2500, 300.0)], "two-points"),
    "constant y": ([probe("off", "cold", x, 90.0) for x in LENGTHS * 3], "constant"),
    "points on one line": ([probe("off", "cold", x, 20 + 0.2 * x) for x in LENGTHS * 3], "exact"),
    "a single repeat": (
        [probe("off", "cold", x, 20 + 0.2 * x + i % 2) for i, x in enumerate(LENGTHS)],
        "single-repeat",
    ),
    "all missing": ([probe("off", "cold", x, None) for x in LENGTHS], "empty"),
    "not numbers": ([probe("off", "cold", x, "12") for x in LENGTHS], "empty"),  # type: ignore[arg-type]
    "NaN": ([probe("off", "cold", x, math.nan) for x in LENGTHS], "empty"),
    "all failed": ([{**probe("off", "cold", x, None), "error": {"kind": "timeout"}} for x in LENGTHS], "failed"),
    "only superseded": ([probe("off", "cold", x, 1.0 * x, superseded=True) for x in LENGTHS], "empty"),
}


@pytest.mark.parametrize(("records", "status"), DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_data_have_a_status_and_a_sentence_and_no_band_of_zero_width(
    records: list[dict[str, Any]], status: str
) -> None:
    found = fit(records)
    assert found.off.status == status
    assert found.off.note.endswith(".")
    assert found.on.status == "empty"
    for estimate in estimates(found.off):
        assert estimate.ci is None or estimate.ci[0] < estimate.ci[1]
        assert estimate.status == "ok" or estimate.note
    assert found.off.band is None or (found.off.band.low_ms < found.off.band.high_ms).all()
    assert found.slope_reduction.status != "ok"
    json.dumps(found.to_dict(), allow_nan=False)
    assert repr(found)


def estimates(line: Line) -> list[Estimate]:
    return [line.slope, line.intercept, line.curvature, line.drift]


def test_the_public_name_is_the_function() -> None:
    assert prefixkit.fit is fit


def test_true_lines_lie_in_the_intervals() -> None:
    found = fit(run())
    assert not found.off.slope.excludes(207.6)
    assert not found.on.intercept.excludes(36.0 + 207.6 * 0.03)
    assert not found.control.slope.excludes(207.6)
    assert not found.slope_reduction.excludes(1 - 6.9 / 207.6)
    assert found.status == "ok"


def test_five_single_rows_give_the_ordinary_least_squares_intervals() -> None:
    rows = [(353, 111.4, 36.7), (681, 168.7, 43.0), (1337, 279.4, 45.1), (2649, 574.0, 56.1), (3961, 852.7, 62.7)]
    found = fit(p for x, off, on in rows for p in (probe("off", "cold", x, off), probe("on", "warm", x, on)))
    assert found.off.slope.value == pytest.approx(207.6, abs=0.05)
    assert found.off.slope.half_width == pytest.approx(16.7, abs=0.05)
    assert found.off.intercept.value == pytest.approx(24.4, abs=0.06)
    assert found.off.intercept.half_width == pytest.approx(37.5, abs=0.06)
    assert found.on.slope.half_width == pytest.approx(2.1, abs=0.05)
    assert found.on.intercept.half_width == pytest.approx(4.7, abs=0.05)
    assert found.slope_reduction.value == pytest.approx(0.967, abs=0.0005)
    assert found.slope_reduction.ci is not None
    assert not found.intercept_difference.excludes(0)


def test_warm_up_failed_superseded_and_unknown_phases_never_enter_and_are_counted() -> None:
    clean = run()
    wild = {"prompt_tokens": 4000, "ttft_ms": 99_999.0}
    extra = [
        {**clean[0], **wild, "phase": "warmup"},
        {**clean[0], **wild, "error": {"kind": "timeout", "message": "slow"}},
        {**clean[0], **wild, "superseded": True},
        {**clean[0], **wild, "phase": "load"},
        {**clean[0], **wild, "phase": None},
        {**clean[0], **wild, "experiment": "switch"},
        {**clean[0], "ttft_ms": None},
        {"record": "sample", "experiment": "length", **wild},
    ]
    found = fit(clean + extra)
    assert found.off.slope == fit(clean).off.slope
    assert found.dropped == {
        "off": {"warm-up": 1, "other phase": 2},
        "off cold": {"failed": 1, "superseded": 1, "missing value": 1},
    }
    assert any("1 failed, 1 missing value, 1 superseded" in note for note in found.notes)


def test_outliers_stay() -> None:
    clean = run()
    worst = {**clean[-1], "ttft_ms": 9000.0}
    found = fit([*clean[:-1], worst])
    assert found.control.n == fit(clean).control.n
    assert len(found.control.outliers) == 1
    assert any("1 of 25 requests lie far off the line" in note for note in found.notes)


@pytest.mark.parametrize(
    "junk",
    [{"prompt_tokens": 10**400}, {"ttft_ms": 1e300}, {"ttft_ms": -1.0}, {"prompt_tokens": True}, {"phase": ["cold"]},
     {"condition": "round 1"}, {"order": "first"}, {"target_tokens": []}, {"server": 3, "timings": 4}],
    ids=str,
)  # fmt: skip
def test_junk_in_a_record_is_no_exception(junk: dict[str, Any]) -> None:
    records = run()
    records[3] = {**records[3], **junk}
    found = fit(records)
    assert found.off.n + sum(sum(reasons.values()) for reasons in found.dropped.values()) == 25
    json.dumps(found.to_dict(), allow_nan=False)


def test_minimal_records_suffice() -> None:
    keys = ("record", "schema", "arm", "experiment", "phase", "prompt_tokens", "ttft_ms", "error")
    found = fit({key: r[key] for key in keys} for r in run())
    assert found.status == "ok"
    assert found.slope_reduction.value == pytest.approx(1 - 6.9 / 207.6, abs=0.02)


def test_without_known_order_the_slope_is_plain_least_squares() -> None:
    rng = np.random.default_rng(5)
    x = rng.choice(LENGTHS, 30)
    y = 30 + 0.2 * x + rng.normal(0, 3, 30)
    found = fit(probe("off", "cold", int(a), float(b)) for a, b in zip(x, y, strict=True))
    assert found.off.slope.value == pytest.approx(1000 * np.polyfit(x, y, 1)[0])


def test_drift_is_reported_and_does_not_pose_as_slope() -> None:
    found = fit(run(drift=0.4))
    assert found.off.drift.excludes(0)
    assert any("TTFT changed by" in note for note in found.notes)
    assert not found.off.slope.excludes(207.6)
    assert (found.off.slope.half_width or 0) < 5


def test_order_by_length_is_called_confounded_with_slope() -> None:
    records = sorted((r for r in run() if r["arm"] == "off"), key=lambda r: r["prompt_tokens"])
    found = fit({**r, "order": i} for i, r in enumerate(records))
    assert found.off.drift.status == "confounded"
    assert any("order of length" in note for note in found.notes)


def test_a_curved_off_line_has_no_fixed_cost() -> None:
    found = fit(run(curve=8.0))
    assert found.off.intercept.status == "curvature"
    assert "not a fixed cost (curvature)" in found.off.intercept.note
    assert found.off.curvature.value == pytest.approx(8.0, abs=1.0)
    assert found.off.lack_of_fit.decision == "line does not fit"
    assert fit(run()).off.intercept.status == "ok"


def test_extrapolation_is_said() -> None:
    line = fit(run()).off
    assert line.predict(2000).status == "ok"
    beyond = line.predict(20_000)
    assert beyond.status == "extrapolated"
    assert "outside the measured 353 to 3,961" in beyond.note


def test_each_length_has_its_own_reduction() -> None:
    found = fit(run())
    assert [round(s.tokens) for s in found.by_length] == list(LENGTHS)
    longest = found.by_length[-1]
    assert longest.saved_ms.value == pytest.approx((longest.off_ms.value or 0) - (longest.on_ms.value or 0))
    assert longest.reduction.value == pytest.approx(0.917, abs=0.02)


def test_a_warm_off_arm_and_warm_first_sends_are_called_out() -> None:
    warm = [{**r, "cached_tokens": 320} if r["phase"] == "cold" else r for r in run()]
    notes = " ".join(fit(warm).notes)
    assert "off: 25 of 25 requests hit a cache" in notes
    assert "on: 25 of 25 cold requests hit the cache" in notes


def test_nominal_lengths_are_called_nominal() -> None:
    records = [{**r, "target_tokens": 4096, "prompt_tokens": 801} for r in run(lengths=(4000,))]
    assert any("4,096 is 801" in note for note in fit(records).notes)


def test_a_target_that_stands_for_many_lengths_is_passed_over() -> None:
    found = fit({**r, "target_tokens": 1} for r in run())
    assert found.status == "ok"
    assert [round(s.tokens) for s in found.by_length] == list(LENGTHS)


def test_targets_that_gave_one_length_make_no_slope() -> None:
    records = [{**r, "target_tokens": i % 3, "prompt_tokens": 512} for i, r in enumerate(run())]
    found = fit(records)
    assert (found.off.status, found.on.status) == ("one-length", "one-length")


def test_targets_that_gave_two_lengths_make_no_curvature() -> None:
    records = [{**r, "target_tokens": i % 5, "prompt_tokens": 512 if i % 5 < 3 else 1024} for i, r in enumerate(run())]
    found = fit(records)
    assert len(found.by_length) == 2
    assert found.off.curvature.status == "not-estimable"


def test_many_targets_are_grouped_by_length() -> None:
    rng = np.random.default_rng(3)
    tokens = [int(x) for x in rng.integers(30, 4000, 1500)]
    records = [
        probe(arm, phase, x, 30 + slope * x + float(rng.normal(0, 2)), target_tokens=x, order=i)
        for arm, phase, slope in (("off", "cold", 0.2), ("on", "warm", 0.01))
        for i, x in enumerate(tokens)
    ]
    found = fit(records)
    assert not found.slope_reduction.excludes(0.95)
    assert 20 < len(found.by_length) < 150
    assert found.off.lack_of_fit.status == "ok"


def test_numbers_of_numpy_count() -> None:
    plain = run()
    records = [{**r, "prompt_tokens": np.int64(r["prompt_tokens"]), "ttft_ms": np.float32(r["ttft_ms"])} for r in plain]
    assert fit(records).off.n == fit(plain).off.n
    assert fit(records).off.slope.value == pytest.approx(fit(plain).off.slope.value, rel=1e-5)


def test_what_belongs_to_no_line_is_counted() -> None:
    found = fit([*run(), probe("cloud", "cold", 300, 20.0), probe("off", "warm", 300, 20.0)])
    assert "In no line: 1 cloud cold, 1 off warm." in found.notes


def test_the_curve_of_the_line_is_not_taken_for_noise_of_the_drift() -> None:
    straight, bent = fit(run(noise_ms=2.0)).off.drift, fit(run(noise_ms=2.0, curve=40.0)).off.drift
    assert bent.half_width == pytest.approx(straight.half_width, rel=0.01)
    assert bent.value == pytest.approx(straight.value, abs=0.05)


def test_mixed_profiles_are_called_out() -> None:
    records = [{**r, "profile": "cpu" if r["arm"] == "on" else "gpu"} for r in run()]
    assert "Records of several profiles are fitted together: cpu, gpu." in fit(records).notes


def test_the_html_is_escaped() -> None:
    found = fit([probe("off", "cold", x, 1.0 * x, schema=2) for x in LENGTHS])
    assert "<script" not in found._repr_html_()
    assert "schema 2" in found._repr_html_()
    assert "R²" in repr(found)
