"""The cache settings in force, as the page reports them."""

from __future__ import annotations

import pytest

from prefixkit.metrics import CacheConfig, MetricsError, cache_config
from tests.metrics.pages import config, series


def test_the_setting_is_what_the_server_says() -> None:
    assert cache_config(config("False", "16", "750", None)) == CacheConfig(False, 16, 750, 12_000, 1)
    assert cache_config(config("True", "784", "20")) == CacheConfig(True, 784, 20, 15_680, 1)


def test_servers_are_added_up() -> None:
    assert cache_config([config(), config()]) == CacheConfig(True, 16, 2000, 32_000, 2)


def test_the_sum_that_each_engine_of_one_server_shows_is_counted_once() -> None:
    page = config(engine="0") + config(engine="1").split("\n", 1)[1]
    assert cache_config(page) == CacheConfig(True, 16, 1000, 16_000, 2)
    different = config(engine="0") + config(blocks="600", engine="1").split("\n", 1)[1]
    assert cache_config(different).num_gpu_blocks == 1600


def test_what_engines_disagree_on_is_not_known() -> None:
    mixed = cache_config([config("True", "16"), config("False", "32")])
    assert (mixed.enable_prefix_caching, mixed.block_size, mixed.kv_capacity_tokens) == (None, None, None)


@pytest.mark.parametrize("page", [series("vllm:prompt_tokens_total", 1.0), config("None", "None", "None")])
def test_what_is_not_reported_is_none(page: str) -> None:
    found = cache_config(page)
    assert (found.enable_prefix_caching, found.block_size, found.num_gpu_blocks) == (None, None, None)


def test_a_body_that_is_no_page_is_an_error() -> None:
    with pytest.raises(MetricsError, match="HTML"):
        cache_config("<html></html>")
