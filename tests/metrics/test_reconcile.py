"""Counters, cached_tokens and block arithmetic agree, or the reason is named."""

from __future__ import annotations

from typing import Any

import pytest

from prefixkit import hit_rate
from prefixkit.metrics import HitRate, reconcile
from tests.metrics.pages import BLOCKS, config, counters, series


def probe(prompt: int, cached: int | None, **more: Any) -> dict[str, Any]:
    return {"record": "probe", "prompt_tokens": prompt, "cached_tokens": cached, "error": None, **more}


def rate(queries: int, hits: int) -> HitRate:
    return hit_rate(counters([(0, 0)]), counters([(queries, hits)]))


RUN = [probe(1000, 0, phase="cold", ttft_ms=900.0), *[probe(1000, 960, phase="warm", ttft_ms=90.0)] * 4]


def test_three_rates_that_agree() -> None:
    found = reconcile(rate(5000, 3840), RUN, 3840)
    assert found.rates == {"counters": 0.768, "cached_tokens": 0.768, "prediction": 0.768}
    assert (found.agree, found.cause) == (True, "agree")


def test_cached_tokens_that_are_not_reported_are_never_zero() -> None:
    probes = [probe(1000, None), probe(1000, None)]
    found = reconcile(rate(2000, 960), probes, 960)
    assert found.rates["cached_tokens"] is None
    assert found.agree is True
    assert "--enable-prompt-tokens-details" in found.reason
    alone = reconcile(HitRate("unreachable", message="down"), probes, 960)
    assert (alone.agree, alone.cause) == (None, "not-reported")


def test_superseded_and_failed_probes_are_left_out() -> None:
    extra = [probe(9000, 0, superseded=True), {**probe(0, None), "error": {"kind": "http", "message": "no"}}]
    assert reconcile(rate(5000, 3840), [*RUN, *extra], 3840).agree is True


def test_more_queries_than_tokens_sent_is_foreign_traffic() -> None:
    found = reconcile(rate(5600, 3840), RUN, 3840)
    assert (found.agree, found.cause) == (False, "foreign-traffic")
    assert "5,600" in found.reason
    assert "5,000" in found.reason


def test_with_preemptions_it_is_a_recount() -> None:
    before = counters([(0, 0)]) + series("vllm:num_preemptions_total", 3.0)
    after = counters([(7400, 2300)]) + series("vllm:num_preemptions_total", 153.0)
    probes = [probe(1000, 0) for _ in range(5)]
    found = reconcile(hit_rate(before, after), probes, 0, before=before, after=after)
    assert (found.agree, found.cause) == (False, "recount")
    assert "150 preemptions" in found.reason
    assert "unreliable" in found.reason


def test_fewer_queries_than_tokens_sent_are_uncounted() -> None:
    assert reconcile(rate(2500, 1920), RUN, 3840).cause == "uncounted"


def test_cached_tokens_without_a_counted_hit_mean_a_counter_that_is_not_wired() -> None:
    assert reconcile(rate(5000, 0), RUN, 3840).cause == "not-wired"


def test_latency_that_behaves_like_hits_also_shows_a_counter_that_is_not_wired() -> None:
    probes = [{**p, "cached_tokens": None} for p in RUN]
    found = reconcile(rate(5000, 0), probes, 3840)
    assert found.cause == "not-wired"
    assert "latency behaves like hits" in found.reason


def test_a_working_set_beyond_the_capacity_is_eviction() -> None:
    before, after = counters([(0, 0)]) + config(blocks="500"), counters([(5000, 0)]) + config(blocks="500")
    probes = [probe(1000, 0, phase="warm", ttft_ms=100.0) for _ in range(5)]
    found = reconcile(hit_rate(before, after), probes, 3840, before=before, after=after, working_set_tokens=12_000)
    assert (found.agree, found.cause) == (False, "eviction")
    assert "12,000" in found.reason
    assert "8,000" in found.reason


def test_hits_in_the_cold_requests_are_a_warm_start() -> None:
    probes = [probe(1000, 960, phase="cold"), *RUN[1:]]
    found = reconcile(rate(5000, 4800), probes, 3840)
    assert found.cause == "warm-start"
    assert "1 of 1 cold requests hit" in found.reason


def test_several_engines_explain_missing_hits() -> None:
    both = hit_rate(counters([(0, 0), (0, 0)]), counters([(2500, 960), (2500, 960)]))
    probes = [probe(1000, 384) for _ in range(5)]
    assert reconcile(both, probes, 3840).cause == "other-engine"


def test_missing_hits_without_a_cause_are_called_unexplained() -> None:
    probes = [probe(1000, 0) for _ in range(5)]
    assert reconcile(rate(5000, 0), probes, 3840).cause == "unexplained"


def test_a_cache_that_is_off_is_the_reason() -> None:
    page = counters([(0, 0)]) + config("False")
    found = reconcile(hit_rate(page, page), [probe(1000, 0)], 0, before=page, after=page)
    assert found.rates["counters"] is None
    only = reconcile(hit_rate(page, page), [probe(1000, None)], None)
    assert (only.agree, only.cause) == (None, "disabled")


def test_counters_in_blocks_are_compared_in_tokens() -> None:
    def page(q: float, h: float) -> str:
        return counters([(q, h)], family="vllm:gpu_prefix_cache", help_text=BLOCKS) + config()

    probes = [probe(1600, 0), probe(1600, 1584)]
    assert reconcile(hit_rate(page(0, 0), page(200, 99)), probes, 1584).agree is True


@pytest.mark.parametrize(("computed", "balanced"), [(1200, True), (1500, False)])
def test_prompt_tokens_are_the_sum_of_their_sources(computed: int, balanced: bool) -> None:
    def page(local: int, cached: int, external: int, total: int) -> str:
        return counters([(0, 0)]) + "".join(
            series(
                f"vllm:prompt_tokens{by}_total",
                value,
                f'engine="0",model_name="tiny"{label}',
            )
            for by, value, label in (
                ("_by_source", local, ',source="local_compute"'),
                ("_by_source", cached, ',source="local_cache_hit"'),
                ("_by_source", external, ',source="external_kv_transfer"'),
                ("", total, ""),
            )
        )

    before, after = page(100, 10, 1, 111), page(100 + computed, 3850, 1, 111 + 5040)
    found = reconcile(rate(5000, 3840), RUN, 3840, before=before, after=after)
    assert found.balanced is balanced
    assert found.sources is not None
    assert found.sources["local_cache_hit"] == 3840
    assert "prompt tokens" in repr(found)


def test_the_html_form_is_escaped() -> None:
    found = reconcile(HitRate("<b>"), [probe(10, None)], 5)
    assert "<b>" not in found._repr_html_()
