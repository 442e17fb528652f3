"""Hit rates from pages of every engine and version: this run only, summed before dividing, never a guess."""

from __future__ import annotations

import gzip
import math
import threading
from itertools import product

import pytest

from prefixkit import hit_rate
from prefixkit.metrics import HitRate
from tests.metrics.pages import BLOCKS, TOKENS, config, counters, series


def test_the_rate_is_of_this_run_and_the_lifetime_is_only_context() -> None:
    rate = hit_rate(counters([(2_000_000, 1_600_000)]), counters([(2_030_000, 1_600_000)]))
    assert (rate.status, rate.queries, rate.hits, rate.hit_rate) == ("ok", 30_000, 0, 0.0)
    assert rate.lifetime is not None
    assert rate.lifetime["hit_rate"] == pytest.approx(1_600_000 / 2_030_000)
    assert "context only" in repr(rate)


def test_engines_are_summed_before_dividing_and_listed_apart() -> None:
    rate = hit_rate(counters([(500, 0), (500, 0)]), counters([(700, 160), (1300, 0)]))
    assert rate.hit_rate == pytest.approx(0.16)
    assert rate.per_engine == {
        "0": {"queries": 200, "hits": 160, "hit_rate": 0.8},
        "1": {"queries": 800, "hits": 0, "hit_rate": 0.0},
    }
    assert "route by prefix" in rate.message


def test_pages_of_several_servers_are_summed_and_keep_their_names() -> None:
    before = [counters([(0, 0)], engine=False), counters([(0, 0)], engine=False)]
    after = [counters([(100, 90)], engine=False), counters([(300, 10)], engine=False)]
    rate = hit_rate(before, after)
    assert rate.hit_rate == pytest.approx(0.25)
    assert [c["hits"] for c in rate.per_engine.values()] == [90, 10]


def test_two_models_on_one_page_are_told_apart() -> None:
    before = counters([(0, 0)], model="a") + counters([(0, 0)], model="b")
    after = counters([(10, 5)], model="a") + counters([(10, 1)], model="b")
    rate = hit_rate(before, after)
    assert rate.queries == 20
    assert rate.per_engine["a"]["hits"] == 5
    assert rate.per_engine["b"]["hits"] == 1


@pytest.mark.parametrize(("help_text", "unit", "saved"), [(BLOCKS, "blocks", 480), (TOKENS, "tokens", 30)])
def test_one_name_counts_blocks_or_tokens_as_its_help_says(help_text: str, unit: str, saved: int) -> None:
    def page(q: float, h: float) -> str:
        return counters([(q, h)], family="vllm:gpu_prefix_cache", help_text=help_text, engine=False) + config()

    rate = hit_rate(page(0, 0), page(40, 30))
    assert (rate.status, rate.unit, rate.hit_rate, rate.tokens_saved) == ("ok", unit, 0.75, saved)


@pytest.mark.parametrize(("version", "unit"), [("0.8.5", "blocks"), ("0.9.1", "tokens"), (None, "unknown")])
def test_without_help_the_version_settles_the_unit(version: str | None, unit: str) -> None:
    def page(q: float, h: float) -> str:
        return counters([(q, h)], family="vllm:gpu_prefix_cache", help_text=None)

    rate = hit_rate(page(0, 0), page(8, 2), version=version)
    assert (rate.unit, rate.hit_rate) == (unit, 0.25)
    assert (rate.tokens_saved is None) == (unit != "tokens")


def test_the_deprecated_twin_and_creation_stamps_are_not_added() -> None:
    def page(q: float, h: float) -> str:
        old = counters([(q, h)], family="vllm:gpu_prefix_cache", created=1_760_000_123.5)
        new = counters([(q, h)], created=1_760_000_123.5)
        steps = "# TYPE vllm:iteration_tokens_total histogram\n" + series("vllm:iteration_tokens_total_sum", 900)
        return old + steps + series("vllm:kv_cache_usage_perc", 8.5e-06) + new

    rate = hit_rate(page(0, 0), page(48, 0))
    assert (rate.family, rate.queries, rate.hits, rate.hit_rate) == ("vllm:prefix_cache", 48, 0, 0.0)


def test_a_gauge_of_minus_one_is_no_rate_and_beats_disabled() -> None:
    page = "".join(
        "    " + line + "\n"
        for line in (
            "# TYPE vllm:gpu_prefix_cache_hit_rate gauge",
            'vllm:gpu_prefix_cache_hit_rate{model_name="tiny"} -1.0',
            'vllm:cpu_prefix_cache_hit_rate{model_name="tiny"} -1.0',
            'vllm:cache_config_info{block_size="16",enable_prefix_caching="False",num_gpu_blocks="700"} 1.0',
            'vllm:prompt_tokens_total{model_name="tiny"} 3.25e+06',
            'vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.0',
        )
    )
    rate = hit_rate(page, page)
    assert (rate.status, rate.hit_rate) == ("gauge-only", None)
    assert "not available" in rate.message
    assert "disabled" in rate.message


def test_the_cpu_gauge_is_read_where_the_gpu_gauge_stays_zero() -> None:
    page = series("vllm:gpu_prefix_cache_hit_rate", 0.0) + series("vllm:cpu_prefix_cache_hit_rate", 0.85)
    rate = hit_rate(page, page)
    assert (rate.status, rate.hit_rate, rate.unit) == ("gauge-only", 0.85, "blocks")
    assert "vllm:cpu_prefix_cache_hit_rate" in rate.message
    assert rate.family == "vllm:cpu_prefix_cache_hit_rate"


def test_a_gauge_of_zero_before_any_request_is_not_a_rate() -> None:
    page = series("vllm:gpu_prefix_cache_hit_rate", 0.0)
    assert hit_rate(page, page).hit_rate is None
    served = page + series("vllm:prompt_tokens_total", 12.0)
    assert hit_rate(served, served).hit_rate == 0.0


def test_gauges_of_several_engines_are_never_averaged() -> None:
    page = series("vllm:gpu_prefix_cache_hit_rate", 0.9)
    rate = hit_rate([page, page], [page, series("vllm:gpu_prefix_cache_hit_rate", 0.1)])
    assert (rate.status, rate.hit_rate) == ("gauge-only", None)


def test_a_page_without_counters_lists_what_was_looked_for_and_what_is_there() -> None:
    page = series("vllm:prompt_tokens_total", 50.0) + series("vllm:my_prefix_thing", 3.0)
    rate = hit_rate(page, page)
    assert (rate.status, rate.hit_rate) == ("not-found", None)
    assert "vllm:prefix_cache_queries_total" in rate.message
    assert "vllm:my_prefix_thing" in rate.message


@pytest.mark.parametrize("prefix", ["ray_vllm_", "ray_vllm:", "gateway_vllm_"])
def test_renamed_counters_give_a_rate_and_say_so(prefix: str) -> None:
    def page(q: int, h: int) -> str:
        labels = '{WorkerId="w1",model_name="tiny"}'
        return f"{prefix}prefix_cache_hits_total{labels} {h}\n{prefix}prefix_cache_queries_total{labels} {q}"

    rate = hit_rate(page(10, 1), page(90, 21))
    assert (rate.status, rate.queries, rate.hits, rate.hit_rate) == ("renamed", 80, 20, 0.25)
    assert f"{prefix}prefix_cache" in rate.message


def test_a_counter_that_ray_exports_twice_is_counted_once() -> None:
    def page(q: int, h: int) -> str:
        return "".join(
            f'ray_vllm_prefix_cache_{what}{end}{{WorkerId="w"}} {value}\n'
            for (what, value), end in product((("queries", q), ("hits", h)), ("", "_total"))
        )

    assert hit_rate(page(0, 0), page(40, 10)).queries == 40


def test_a_ray_worker_without_hits_yet_has_none() -> None:
    before = 'ray_vllm_prefix_cache_queries_total{WorkerId="a"} 10\n'
    after = 'ray_vllm_prefix_cache_queries_total{WorkerId="a"} 30\nray_vllm_prefix_cache_hits_total{WorkerId="a"} 5\n'
    assert hit_rate(before, after).hit_rate == pytest.approx(0.25)
    alone = hit_rate(before, before)
    assert (alone.status, alone.hit_rate) == ("not-found", None)
    assert "renamed metric found" in alone.message


def test_sglang_counters_are_summed_over_their_sources() -> None:
    def page(q: int, device: int, host: int) -> str:
        half = q // 2
        return (
            f'sglang:prompt_tokens_total{{model_name="tiny",is_streaming="true"}} {half}.0\n'
            f'sglang:prompt_tokens_total{{model_name="tiny",is_streaming="false"}} {q - half}.0\n'
            f'sglang:cached_tokens_total{{model_name="tiny",cache_source="device"}} {device}.0\n'
            f'sglang:cached_tokens_total{{model_name="tiny",cache_source="host"}} {host}.0\n'
        )

    rate = hit_rate(page(0, 0, 0), page(1000, 300, 100))
    assert (rate.status, rate.unit, rate.hit_rate) == ("ok", "tokens", 0.4)
    assert rate.family is not None
    assert rate.family.startswith("sglang:")


@pytest.mark.parametrize(("value", "rate"), [(37.5, 0.375), (0.375, 0.375)])
def test_sglangs_gauge_may_be_a_percentage_or_a_fraction(value: float, rate: float) -> None:
    page = series("sglang:cache_hit_rate", value, 'name="tiny"')
    assert (hit_rate(page, page).status, hit_rate(page, page).hit_rate) == ("gauge-only", rate)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (counters([(300, 200)]), counters([(40, 5)])),
        (counters([(300, 200)]), counters([(400, 100)])),
        (counters([(100, 50)], created=1_760_000_000.0), counters([(400, 60)], created=1_760_000_900.0)),
        (
            counters([(100, 50)]) + "process_start_time_seconds 1.76e+09\n",
            counters([(900, 60)]) + "process_start_time_seconds 1.760000500e+09\n",
        ),
        (counters([(100, 50), (100, 50)]), counters([(200, 60)])),
        (counters([(100, 50)], family="vllm:gpu_prefix_cache"), counters([(200, 60)])),
        (series("vllm:gpu_prefix_cache_hit_rate", 0.5), counters([(200, 60)])),
    ],
    ids=["both-fell", "hits-fell", "created-anew", "process-younger", "engine-gone", "other-version", "gauge-before"],
)
def test_a_restart_between_the_readings_leaves_no_rate(before: str, after: str) -> None:
    rate = hit_rate(before, after)
    assert (rate.status, rate.hit_rate) == ("restarted", None)


def test_an_engine_that_joined_is_counted_from_zero() -> None:
    assert hit_rate(counters([(100, 50)]), counters([(100, 50), (60, 30)])).hit_rate == 0.5


def test_hits_that_outgrow_queries_are_no_rate() -> None:
    rate = hit_rate(counters([(100, 10)]), counters([(110, 40)]))
    assert rate.hit_rate is None
    assert rate.per_engine["0"]["hit_rate"] is None
    assert "hits grew by 30 and queries by 10" in rate.message


def test_disabled_is_told_from_no_queries() -> None:
    off = counters([(0, 0)]) + config("False")
    on = counters([(70, 7)]) + config("True")
    assert (hit_rate(off, off).status, hit_rate(off, off).hit_rate) == ("disabled", None)
    assert (hit_rate(on, on).status, hit_rate(on, on).hit_rate) == ("no-queries", None)


def test_external_hits_are_kept_apart_from_local_ones() -> None:
    def page(q: float, h: float, eq: float, eh: float) -> str:
        return counters([(q, h)]) + counters([(eq, eh)], family="vllm:external_prefix_cache")

    rate = hit_rate(page(0, 0, 0, 0), page(1000, 300, 700, 350))
    assert rate.hit_rate == 0.3
    assert rate.external == {"queries": 700, "hits": 350, "hit_rate": 0.5}


@pytest.mark.parametrize(
    ("page", "named"),
    [
        (series("vllm:current_qps", 2.0) + series("vllm:num_requests_running", 1.0), "router"),
        ("litellm_requests_total 3\n", "LiteLLM"),
        ("llamacpp:prompt_tokens_total 3\n", "llama.cpp"),
        ("shop_orders_total 3\n", "shop_orders_total"),
        ("<!doctype html><title>Sign in</title>", "HTML"),
        ('{"mode": "serve"}', "JSON"),
        (gzip.compress(b"vllm:prompt_tokens_total 1.0\n"), "gzip"),
        (gzip.compress(b"vllm:prompt_tokens_total 1.0\n").decode("latin-1"), "compressed"),
        ("just a sentence without numbers", "just a sentence"),
        ("Not Found here\nplease go elsewhere\n", "Not Found"),
    ],
    ids=["router", "proxy", "llama.cpp", "shop", "html", "json", "gzip-bytes", "gzip-text", "prose", "lines"],
)
def test_a_page_of_something_else_is_named(page: str | bytes, named: str) -> None:
    rate = hit_rate(page, page)
    assert (rate.status, rate.hit_rate) == ("wrong-page", None)
    assert named in rate.message


def test_a_router_page_as_the_first_reading_is_not_taken_for_zero() -> None:
    rate = hit_rate(series("vllm:current_qps", 2.0), counters([(900, 800)]))
    assert (rate.status, rate.hit_rate) == ("wrong-page", None)
    assert rate.message.startswith("before")


def test_counters_that_a_router_relays_are_not_read_there() -> None:
    def page(q: float, h: float) -> str:
        relayed = counters([(q, h)], family="vllm:gpu_prefix_cache").replace('engine="0"', 'server="http://a:8000"')
        return relayed + series("vllm:current_qps", 1.0, 'server="http://a:8000"')

    rate = hit_rate(page(0, 0), page(100, 50))
    assert (rate.status, rate.hit_rate) == ("wrong-page", None)
    assert "scrape each engine" in rate.message


@pytest.mark.parametrize("page", ["", "  \n\n", b"", "# TYPE vllm:prefix_cache_hits_total counter\n"])
def test_an_empty_page_is_called_empty(page: str | bytes) -> None:
    assert hit_rate(page, page).status == "empty"
    assert hit_rate([], []).status == "empty"


def test_a_page_with_only_the_runtimes_series_says_the_endpoint_is_alive() -> None:
    page = 'python_info{version="3.12"} 1.0\nprocess_virtual_memory_bytes 2.5026189312e+010\n'
    rate = hit_rate(page, page)
    assert rate.status == "not-found"
    assert "alive" in rate.message
    assert "0.5.4" in rate.message


def test_three_digit_exponents_are_numbers() -> None:
    rate = hit_rate(counters([(0, 0)]), "vllm:prefix_cache_queries_total 2e+003\nvllm:prefix_cache_hits_total 5e+002\n")
    assert rate.status in ("ok", "restarted")
    pages = ["vllm:prefix_cache_queries_total 0\nvllm:prefix_cache_hits_total 0\n"]
    pages.append("vllm:prefix_cache_queries_total 2e+003\nvllm:prefix_cache_hits_total 5e+002\n")
    assert hit_rate(*pages).hit_rate == 0.25


def test_a_page_cut_anywhere_never_gives_a_wrong_rate() -> None:
    before = counters([(0, 0), (0, 0)])
    whole = series("vllm:num_requests_running", 0.0) + counters([(1200, 600), (1200, 600)]) + config()
    for length in range(len(whole)):
        rate = hit_rate(before, whole[:length])
        assert rate.hit_rate in (None, 0.5), whole[:length]


def test_half_a_page_says_that_it_is_cut_off() -> None:
    page = counters([(100, 50), (100, 50)])
    cut = page[: page.index("vllm:prefix_cache_hits_total{") + 20]
    assert "cut off" in hit_rate(page, cut).message
    assert "cut off" in hit_rate(cut, page).message


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-3.0"])
def test_values_that_no_counter_can_have_give_no_rate(value: str) -> None:
    after = f'vllm:prefix_cache_queries_total{{engine="0"}} {value}\nvllm:prefix_cache_hits_total{{engine="0"}} 1.0\n'
    rate = hit_rate(after, after)
    assert rate.hit_rate is None
    assert rate.status == "not-found"


def test_a_rate_is_none_or_between_zero_and_one_whatever_the_counters_do() -> None:
    values = (0, 1, 7, 1000)
    for q0, h0, q1, h1 in product(values, repeat=4):
        rate = hit_rate(counters([(q0, h0)]), counters([(q1, h1)])).hit_rate
        assert rate is None or (math.isfinite(rate) and 0 <= rate <= 1)


def test_a_hundred_engines_and_five_megabytes_are_summed() -> None:
    other = "".join(
        f'vllm:e2e_request_latency_seconds_bucket{{engine="{n % 100}",le="{n}",model_name="some/long-model"}} {n}.0\n'
        for n in range(56_000)
    )
    assert len(other) > 5_000_000
    before = counters([(10, 0)] * 100) + other
    after = other + counters([(20, 5)] * 100)
    rate = hit_rate(before, after)
    assert (rate.queries, rate.hits, len(rate.per_engine)) == (1000, 500, 100)


def test_the_html_form_escapes_what_the_page_says() -> None:
    rate = hit_rate(counters([(0, 0)], model="<b>x</b>"), counters([(2, 1)], model="<b>x</b>"))
    shown = HitRate("not-found", message="<script>alert(1)</script>")._repr_html_()
    assert "<script>" not in shown
    assert "<b>x" not in rate._repr_html_()


def test_labels_with_braces_commas_and_quotes_are_read() -> None:
    model = r"a\"b},{c d\\e"
    assert hit_rate(counters([(0, 0)], model=model), counters([(4, 1)], model=model)).hit_rate == 0.25


def test_readings_can_be_compared_in_several_threads() -> None:
    rates: list[float | None] = []

    def compare() -> None:
        rates.append(hit_rate(counters([(0, 0)]), counters([(4, 1)])).hit_rate)

    threads = [threading.Thread(target=compare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rates == [0.25] * 4
