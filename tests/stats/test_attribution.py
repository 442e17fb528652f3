"""What an uncached and a cached token cost, and what that makes of a prompt of one's own."""

from __future__ import annotations

import pytest

from prefixkit.stats import Estimate, attribution, worth
from tests.stats.simulated import run

TPOT = Estimate(18.0, 17.9, 18.1, 16, "ms/token")


def test_both_costs_are_found() -> None:
    found = attribution(run())
    assert found.status == "ok"
    assert not found.uncached.excludes(207.6)
    assert not found.cached.excludes(6.9)
    assert not found.base_ms.excludes(36.0)
    assert found.cached_share.value == pytest.approx(6.9 / 207.6, abs=0.02)
    assert found.n == 100


def test_attention_enters_where_costs_curve_and_predictions_follow_it() -> None:
    straight, curved = attribution(run()), attribution(run(curve=8.0))
    assert straight.attention.status == "not-seen"
    assert curved.attention.value == pytest.approx(16.0, abs=2.0)
    found = worth(curved, system=3000, history=0, question=500, output=1)
    assert found.off_ms.value == pytest.approx(36 + 207.6 * 3.5 + 8 * 3.5**2, abs=15)


def test_unreported_hits_are_left_out_and_counted_not_taken_for_zero() -> None:
    records = [{**r, "cached_tokens": None} if r["phase"] == "warm" else r for r in run()]
    found = attribution(records)
    assert found.dropped == {"no usable cached_tokens": 25}
    assert found.status == "not-estimable"
    assert found.note


def test_no_hits_anywhere_is_a_status() -> None:
    found = attribution([r for r in run() if r["phase"] != "warm"])
    assert found.status == "not-estimable"
    assert "cannot be seen" in found.note
    assert attribution([]).status == "empty"


def test_a_chat_of_2830_tokens_with_2800_cached() -> None:
    found = worth(attribution(run()), system=800, history=2000, question=30, output=64, tpot_ms=TPOT)
    assert (found.prompt_tokens, found.cached_tokens) == (2830, 2800)
    assert found.saved_ms.value == pytest.approx(2.8 * 200.7, abs=10)
    assert found.ttft_reduction.value == pytest.approx(0.9, abs=0.02)
    assert found.answer_reduction.value == pytest.approx(562 / (623 + 63 * 18), abs=0.01)
    assert found.saved_ms.ci is not None
    assert found.answer_reduction.ci is not None


def test_the_share_saved_is_covered_as_often_as_said() -> None:
    truth = 2.8 * 200.7 / (36 + 2.83 * 207.6)
    inside = 0
    for seed in range(200):
        model = attribution(run(seed=seed, noise_ms=30.0))
        share = worth(model, system=800, history=2000, question=30, output=1).ttft_reduction
        inside += not share.excludes(truth)
    assert 180 <= inside <= 198  # 95 %, give or take three standard errors


def test_hits_come_in_whole_blocks() -> None:
    model = attribution(run())
    assert worth(model, system=100, history=0, question=300, output=1, block=32).cached_tokens == 96
    none = worth(model, system=10, history=0, question=400, output=1)
    assert none.cached_tokens == 0
    assert none.saved_ms.status == "no-hits"
    assert "less than a block" in none.note


def test_a_prompt_of_another_size_is_extrapolated_and_says_so() -> None:
    found = worth(attribution(run()), system=20_000, history=0, question=30, output=1)
    assert found.saved_ms.status == "extrapolated"
    assert "outside the measured" in found.note


def test_without_a_model_or_a_rate_there_is_a_reason() -> None:
    assert worth(attribution([]), system=800, history=0, question=30, output=1).saved_ms.status == "empty"
    unknown = worth(attribution(run()), system=800, history=0, question=30, output=64).answer_reduction
    assert unknown.status == "not-estimable"
