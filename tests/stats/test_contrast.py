"""Controls: warm against salted, control against off, unique prompts, and a cache that does not help."""

from __future__ import annotations

import pytest

from prefixkit.stats import (
    control_against_off,
    first_sends_against_off,
    fit,
    leading_contrast,
    why_no_gain,
)
from prefixkit.stats.contrast import visit_pairs
from tests.stats.simulated import run


def test_the_leading_contrast_pairs_warm_with_the_control_of_its_visit() -> None:
    records = run()
    found = leading_contrast(records)
    assert found.pairs == 25
    assert not found.saved_per_1k.excludes(200.7)
    assert not found.slope_reduction.excludes(1 - 6.9 / 207.6)
    assert [round(p.tokens) for p in found.by_length] == [353, 681, 1337, 2649, 3961]
    assert found.by_length[-1].reduction.value == pytest.approx(0.917, abs=0.01)


def test_shared_drift_cancels_in_the_leading_contrast() -> None:
    steady, drifting = (leading_contrast(run(drift=d)).slope_reduction.half_width for d in (0.0, 0.5))
    assert steady is not None
    assert drifting is not None
    assert drifting < 2 * steady


def test_no_pairs_is_a_status() -> None:
    found = leading_contrast([r for r in run() if r["phase"] != "control"])
    assert found.saved_per_1k.status == "empty"
    assert found.pairs == 0


def test_pairs_need_a_round() -> None:
    assert visit_pairs({**r, "condition": {}} for r in run()) == []


def test_an_equal_control_is_equivalent_to_off() -> None:
    found = control_against_off(fit(run()), 0.05)
    assert found.decision == "equivalent"
    assert found.margin == 0.05


def test_a_control_outside_the_margin_says_that_machine_or_servers_differed() -> None:
    found = control_against_off(fit(run(control_factor=1.2)), 0.05)
    assert found.decision == "different"
    assert "the machine or the servers differed between arms" in found.verdict.note
    assert found.relative.value == pytest.approx(0.2, abs=0.02)


def test_a_noisy_control_is_undecided_not_equal() -> None:
    assert control_against_off(fit(run(noise_ms=400, base_ms=2000)), 0.02).decision == "undecided"


def test_without_a_control_nothing_is_tested() -> None:
    found = control_against_off(fit([r for r in run() if r["phase"] != "control"]))
    assert found.decision == "not tested"
    assert found.verdict.note


def test_unique_prompts_cost_the_same_with_the_cache_on() -> None:
    assert first_sends_against_off(fit(run())).decision == "equivalent"


def test_a_saving_is_reported_as_such() -> None:
    found = why_no_gain(fit(run()))
    assert found.status == "ok"
    assert (found.low or 0) > 0


def test_equal_arms_with_high_hits_are_not_distinguishable_and_the_reason_is_sought() -> None:
    found = why_no_gain(fit(run(off_slope=6.9, noise_ms=20)), 0.94)
    assert found.status == "not-distinguishable"
    assert found.ci is not None
    assert found.ci[0] < 0 < found.ci[1]
    assert "94.0%" in found.note
    assert "less than the noise" in found.note or "queueing" in found.note


def test_a_slower_on_arm_is_called_slower() -> None:
    records = [{**r, "ttft_ms": r["ttft_ms"] + 900} if r["phase"] == "warm" else r for r in run()]
    assert why_no_gain(fit(records)).status == "slower"
