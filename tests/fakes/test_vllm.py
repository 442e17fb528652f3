from __future__ import annotations

import httpx
import pytest

from prefixkit import Client
from prefixkit.metrics import cache_config, fetch, totals
from tests.fakes.kv import Engine, Tokenizer
from tests.fakes.settings import Settings, settings_from
from tests.fakes.vllm import FakeVllm

TEXT = [{"role": "user", "content": "the old wall stood for long " * 20}]


def ask(engine: Engine, start: int, salt: str | None = None, length: int = 64) -> int:
    with engine.hold(list(range(start, start + length)), salt) as cached:
        return cached


def test_tokens_turn_back_into_their_text() -> None:
    tokenizer = Tokenizer()
    text = "Zheng He's 7 voyages,\n 郑和下西洋 elephantine."
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_identical_prompt_never_hits_its_last_block_when_it_fills_it() -> None:
    engine = Engine(16, 100, True)
    assert [ask(engine, 0), ask(engine, 0), ask(engine, 0, "salt")] == [0, 48, 0]
    assert (engine.queries, engine.hits) == (192, 48)


def test_the_least_recently_used_prefix_is_evicted_first() -> None:
    engine = Engine(16, 2 * 5 + 1, True)
    assert [ask(engine, 0), ask(engine, 1000), ask(engine, 0)] == [0, 0, 48]
    assert ask(engine, 2000) == 0
    assert ask(engine, 0) == 48
    assert ask(engine, 1000) < 48


def test_without_caching_nothing_is_asked_or_hit() -> None:
    engine = Engine(16, 100, False)
    assert [ask(engine, 0), ask(engine, 0)] == [0, 0]
    assert (engine.queries, engine.hits, engine.prompt_tokens) == (0, 0, 128)


def test_replies_counters_and_settings_agree() -> None:
    with FakeVllm(Settings(block_size=32)) as fake, Client(fake.url, "fake") as client:
        probes = [client.probe(TEXT, max_tokens=3, ignore_eos=True) for _ in range(2)]
        pages = fetch(fake.metrics_url)
    prompt = probes[0].prompt_tokens
    assert prompt is not None
    assert [p.cached_tokens for p in probes] == [0, (prompt - 1) // 32 * 32]
    assert [p.completion_tokens for p in probes] == [3, 3]
    assert totals(pages, "vllm:prefix_cache_queries") == 2 * prompt
    assert totals(pages, "vllm:prefix_cache_hits") == probes[1].cached_tokens
    assert cache_config(pages).block_size == 32


def test_two_engines_take_turns() -> None:
    with FakeVllm(Settings(engines=2)) as fake, Client(fake.url, "fake") as client:
        cached = [client.probe(TEXT).cached_tokens for _ in range(3)]
    assert cached[:2] == [0, 0]
    assert cached[2]


def test_a_gateway_has_no_endpoints_of_vllm_and_refuses_its_fields() -> None:
    with FakeVllm(Settings(gateway=True, models=("m",))) as fake, Client(fake.url, "m") as client:
        assert httpx.get(fake.metrics_url).status_code == 404
        assert client.probe(TEXT).error is None
        refused = client.probe(TEXT, cache_salt="x")
    assert refused.error is not None


@pytest.mark.parametrize("argv", [["serve", "name", "--port", "9"], ["--model", "name", "--port=9", "--enforce-eager"]])
def test_flags_are_read_as_vllm_reads_them(argv: list[str]) -> None:
    settings, port = settings_from([*argv, "--no-enable-prefix-caching", "--block-size", "32"])
    assert (settings.model, port, settings.caching, settings.block_size) == ("name", 9, False, 32)
