"""Predicted against measured saving, steps, pooled model, repeats."""

from __future__ import annotations

import pytest

from prefixkit.stats import (
    amdahl_bound,
    ceiling,
    fit,
    narrow_enough,
    pooled,
    repeats_needed,
    server_steps,
    steps,
)
from tests.stats.simulated import LENGTHS, run


def test_measured_saving_falls_short_by_what_cached_tokens_still_cost() -> None:
    found = ceiling(fit(run()))
    assert len(found) == len(LENGTHS)
    longest = found[-1]
    assert longest.cached_tokens == 3936
    assert not longest.predicted_ms.excludes(207.6 * 3.936)
    assert not longest.shortfall_ms.excludes(6.9 * 3.936)
    assert not longest.bound.excludes(1 - 36 / (36 + 207.6 * 3.961))


def test_no_ceiling_without_hits_reported() -> None:
    assert ceiling(fit({**r, "cached_tokens": None} for r in run())) == ()
    assert ceiling(fit([])) == ()


def test_the_bound_of_a_missing_line_is_a_status() -> None:
    assert amdahl_bound(fit([]).off, 1000).status == "empty"


def test_the_bound_carries_the_doubt_of_a_curved_line() -> None:
    assert amdahl_bound(fit(run(curve=8.0)).off, 3961).status == "curvature"


def test_a_negative_intercept_gives_no_bound() -> None:
    bound = amdahl_bound(fit(run(curve=80.0)).off, 3961)
    assert bound.value is None
    assert "not a fixed cost (curvature)" in bound.note


def test_the_pooled_model_holds_both_lines_and_their_difference() -> None:
    found = fit(run())
    both = pooled(found.on, found.off)
    assert both.slope_off.value == pytest.approx(found.off.slope.value)
    assert both.slope_on_minus_off.value == pytest.approx(-(found.slope_difference.value or 0))
    assert both.on_minus_off_ms.value == pytest.approx(-(found.intercept_difference.value or 0))
    assert both.slope_on_minus_off.half_width == pytest.approx(found.slope_difference.half_width, rel=0.02)
    assert both.r2 is not None
    assert both.r2 > 0.99
    assert pooled(found.on, fit([]).off).slope_off.status == "empty"


def test_a_chunk_step_is_found_where_lengths_lie_on_both_sides() -> None:
    lengths = (500, 900, 1020, 1030, 1500, 2000, 2040, 2060, 2500)
    records = [
        {**r, "ttft_ms": r["ttft_ms"] + 30 * -(-r["prompt_tokens"] // 1024)} for r in run(lengths=lengths, noise_ms=2)
    ]
    found = fit(records)
    assert not steps(found.off, found.on, chunk_tokens=1024, block_size=None).chunk.excludes(30)


def test_steps_that_cannot_be_told_from_slope_are_not_estimated() -> None:
    found = fit(run())
    unseen = steps(found.off, found.on, chunk_tokens=8192, block_size=None)
    assert unseen.chunk.status == "not-estimable"
    assert unseen.block.status == "unknown"
    assert steps(fit([]).off, fit([]).on, chunk_tokens=1024, block_size=16).block.status == "empty"


def test_the_servers_chunk_and_block_are_read_from_its_own_run_record() -> None:
    args = {"server": {"engine_args": {"max_num_batched_tokens": 2048}}}
    runs = [
        {"record": "run", "block_size": 32, "params": args},
        {"record": "run", "block_size": 128, "experiment": "blocks", "params": args},
    ]
    assert server_steps(runs) == (2048, 32)
    assert server_steps([]) == (None, None)


def test_more_repeats_for_more_precision() -> None:
    records = run(noise_ms=15)
    rough, fine = repeats_needed(records, 0.01), repeats_needed(records, 0.001)
    assert rough.needed is not None
    assert fine.needed is not None
    assert rough.needed < fine.needed
    assert rough.have == 5


def test_a_run_may_stop_when_the_reduction_is_narrow_enough() -> None:
    assert narrow_enough(run(noise_ms=2, rounds=10), 0.02)
    assert not narrow_enough(run(noise_ms=60, rounds=10), 0.002)
    assert not narrow_enough(run(noise_ms=2, rounds=9), 0.9)
    assert not narrow_enough([], 0.9)


def test_arm_off_alone_stops_by_its_own_relative_precision() -> None:
    off = [r for r in run(noise_ms=8, rounds=10) if r["arm"] == "off"]
    assert narrow_enough(off, 0.05)
    assert not narrow_enough(off, 0.001)


def test_without_an_interval_the_needed_repeats_are_unknown_with_a_reason() -> None:
    found = repeats_needed(run(rounds=1), 0.02)
    assert found.needed is None
    assert found.note.endswith(".")
