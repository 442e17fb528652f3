"""Causes follow from numbers: the block before the timestamp, the counter before the prompt."""

from __future__ import annotations

import pytest

from prefixkit import hit_rate
from prefixkit.doctor import Check, Evidence, explain
from prefixkit.metrics import HitRate
from tests.metrics.pages import counters


def rate(queries: int, hits: int) -> HitRate:
    return hit_rate(counters([(0, 0)]), counters([(queries, hits)]))


def names(checks: list[Check]) -> list[str]:
    return [c.name for c in checks]


@pytest.mark.parametrize(("shared", "block"), [(480, 528), (240, 784), (15, 16)])
def test_a_prefix_shorter_than_a_block_is_the_first_cause(shared: int, block: int) -> None:
    found = explain(Evidence(shared_tokens=shared, prompt_tokens=shared + 400, block_size=block, counters=rate(900, 0)))
    assert names(found) == ["block-size"]
    assert f"shared prefix ({shared} tokens) < block ({block} tokens)" in found[0].found
    assert found[0].status == "failed"


def test_a_setting_in_force_beats_everything_else() -> None:
    found = explain(Evidence(shared_tokens=10, block_size=16, enabled=False, counters=rate(900, 0)))
    assert names(found) == ["cache-off", "block-size"]
    assert "enable_prefix_caching=False" in found[0].found


def test_stable_prompts_longer_than_a_block_without_hits_point_at_the_model() -> None:
    found = explain(
        Evidence(
            shared_tokens=590,
            prompt_tokens=610,
            block_size=16,
            counters=rate(1200, 0),
            cold_ms=(5480.0, 5510.0),
            warm_ms=(5550.0, 5500.0),
        )
    )
    assert names(found) == ["no-hits"]
    assert "byte-stable" in found[0].found
    assert "hybrid" in found[0].remedy
    assert "start-up log" in found[0].remedy


def test_replies_that_report_nothing_cached_are_enough_to_see_a_miss() -> None:
    found = explain(Evidence(shared_tokens=900, prompt_tokens=900, block_size=16, cached=(0, 0)))
    assert names(found) == ["no-hits"]


def test_latency_like_hits_with_a_counter_at_zero_blames_the_counter() -> None:
    found = explain(
        Evidence(
            shared_tokens=6000,
            prompt_tokens=6100,
            block_size=16,
            counters=rate(24_000, 0),
            cold_ms=(5400.0, 5500.0, 5450.0),
            warm_ms=(790.0, 810.0, 800.0),
        )
    )
    assert names(found) == ["counters"]
    assert "may not be wired" in found[0].found
    assert found[0].status == "warning"


def test_cached_tokens_with_a_counter_at_zero_blame_the_counter_too() -> None:
    found = explain(Evidence(shared_tokens=900, prompt_tokens=900, cached=(896,), counters=rate(1800, 0)))
    assert names(found) == ["counters"]
    assert "896" in found[0].found


def test_a_working_set_beyond_the_capacity_is_eviction_and_no_speed_up_is_claimed() -> None:
    evidence = Evidence(
        shared_tokens=1250,
        prompt_tokens=1250,
        block_size=16,
        kv_capacity_tokens=29_000,
        working_set_tokens=37_500,
        counters=rate(75_000, 0),
        cold_ms=(495.0, *[172.0 + n % 3 for n in range(29)]),
        warm_ms=tuple(172.0 + n % 3 for n in range(30)),
    )
    found = explain(evidence)
    assert names(found) == ["kv-capacity"]
    assert "37,500 > KV capacity 29,000" in found[0].found
    assert not evidence.shift.distinguishable


def test_hits_without_a_gain_give_the_interval_and_what_hides_it() -> None:
    same = (100.0, 118.0, 84.0, 109.0, 93.0)
    found = explain(
        Evidence(
            shared_tokens=130,
            prompt_tokens=130,
            cached=(112, 112),
            cold_ms=same,
            warm_ms=same,
            counters=rate(1000, 940),
            queue_ms=400.0,
            decode_share=0.9,
        )
    )
    assert names(found) == ["no-gain"]
    assert "not distinguishable" in found[0].found
    assert "short (130 tokens)" in found[0].found
    assert "queue for 400 ms" in found[0].found
    assert "90% of the time is decoding" in found[0].found


def test_hits_with_a_gain_need_no_explanation() -> None:
    good = Evidence(
        shared_tokens=1000,
        prompt_tokens=1000,
        block_size=16,
        cached=(992, 992),
        cold_ms=(900.0, 910.0, 905.0),
        warm_ms=(60.0, 61.0),
        counters=rate(5000, 1984),
        sent_tokens=5000,
    )
    assert explain(good) == []


def test_more_queries_than_were_sent_are_other_traffic_or_a_recount() -> None:
    found = explain(
        Evidence(shared_tokens=900, prompt_tokens=900, cached=(896,), counters=rate(9000, 896), sent_tokens=1800)
    )
    assert names(found) == ["traffic"]
    again = explain(Evidence(prompt_tokens=900, counters=rate(9000, 10), sent_tokens=1800, preemptions=7))
    assert "7 preemptions: recount" in again[0].found


def test_several_engines_are_explained_by_where_a_prefix_was_computed() -> None:
    both = hit_rate(counters([(0, 0), (0, 0)]), counters([(900, 448), (900, 0)]))
    found = explain(Evidence(shared_tokens=450, prompt_tokens=450, cached=(0, 448), counters=both, engines=2))
    assert names(found) == ["engines"]
    assert found[0].status == "warning"
    assert "affinity" in found[0].remedy


def test_nothing_known_blames_nothing() -> None:
    assert explain(Evidence()) == []
