"""Sums of counters, and gauges that show a moment that has passed."""

from __future__ import annotations

from prefixkit.metrics import kv_usage, totals
from tests.metrics.pages import series


def test_a_counter_is_summed_over_engines_and_pages_with_or_without_its_suffix() -> None:
    page = series("vllm:prompt_tokens_total", 10.0) + series("vllm:prompt_tokens_total", 5.0, 'engine="1"')
    assert totals(page, "vllm:prompt_tokens") == 15.0
    assert totals([page, page], "vllm:prompt_tokens_total") == 30.0


def test_labels_narrow_the_sum() -> None:
    page = "".join(
        series("vllm:prompt_tokens_by_source_total", n, f'engine="0",source="{s}"')
        for s, n in (("local_compute", 7.0), ("local_cache_hit", 3.0))
    )
    assert totals(page, "vllm:prompt_tokens_by_source", {"source": "local_cache_hit"}) == 3.0
    assert totals(page, "vllm:prompt_tokens_by_source", {"source": "other"}) is None


def test_histograms_give_their_sum_and_count() -> None:
    page = series("vllm:time_to_first_token_seconds_sum", 1.5) + series("vllm:time_to_first_token_seconds_count", 3.0)
    assert totals(page, "vllm:time_to_first_token_seconds_sum") == 1.5
    assert totals(page, "vllm:time_to_first_token_seconds_count") == 3.0


def test_a_series_that_is_not_there_is_not_zero() -> None:
    assert totals(series("vllm:prompt_tokens_total", 1.0), "vllm:num_preemptions") is None


def test_usage_after_an_abort_is_stale_until_an_engine_steps() -> None:
    def page(usage: float, running: float, generated: float) -> str:
        return (
            series("vllm:kv_cache_usage_perc", usage)
            + series("vllm:num_requests_running", running)
            + series("vllm:generation_tokens_total", generated)
        )

    frozen = kv_usage(page(0.97, 80, 500), page(0.97, 80, 500))
    assert (frozen.fraction, frozen.stale) == (0.97, True)
    assert "stale" in frozen.message
    assert not kv_usage(page(0.97, 80, 500), page(0.01, 0, 501)).stale
    assert not kv_usage(page(0.90, 80, 500), page(0.97, 80, 900)).stale
    assert not kv_usage(page(0.0, 0, 5), page(0.0, 0, 5)).stale
    assert kv_usage(series("vllm:a", 1.0), series("vllm:a", 1.0)).fraction is None
