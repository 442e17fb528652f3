"""The client against a real vLLM server."""

import pytest

from prefixkit.probe import Client, closed_loop

pytestmark = pytest.mark.real

TEXT = "The cache keeps what was read before, block by block. " * 40


@pytest.fixture
def client(real_on):
    with Client(real_on.url, real_on.model, real_on.api_key) as client:
        yield client


def test_cold_and_warm_agree_with_the_servers_own_clock_and_counts(client):
    messages = [{"role": "user", "content": TEXT}]
    salt = {"cache_salt": "a run of its own"}
    cold, warm = (client.probe(messages, max_tokens=1, **salt) for _ in range(2))
    assert cold.error is None and warm.error is None
    assert cold.prompt_tokens == warm.prompt_tokens == len(client.tokenize(messages))
    assert cold.cached_tokens == 0 < warm.cached_tokens < warm.prompt_tokens
    for probe in (cold, warm):
        assert probe.ttft_ms >= probe.server["ttft_ms"] + probe.server["queue_ms"] > 0
        assert probe.timings["headers"] <= probe.timings["role"] <= probe.ttft_ms <= probe.e2e_ms


def test_text_survives_the_servers_tokenizer_and_the_version_is_told(client):
    ids = client.tokenize("hello wörld")
    assert client.detokenize(ids) == "hello wörld" and client.version()
    assert client.models()[0]["id"] == client.model and client.models()[0]["max_model_len"] > 0


def test_eight_at_once_are_all_answered_with_the_tokens_asked_for(client):
    requests = [[{"role": "user", "content": f"Count from {n}."}] for n in range(8)]
    timed = closed_loop(client, requests, 8, max_tokens=4, ignore_eos=True)
    assert [(t.probe.error, t.probe.completion_tokens) for t in timed] == [(None, 4)] * 8


def test_a_wrong_model_lists_the_right_one_and_a_long_prompt_shows_the_limit(real_on):
    with Client(real_on.url, "nope", real_on.api_key) as client:
        error = client.probe([{"role": "user", "content": "hi"}]).error
    assert error["kind"] == "http_404_model" and real_on.model in error["message"]
    with Client(real_on.url, real_on.model, real_on.api_key) as client:
        error = client.probe([{"role": "user", "content": TEXT * 40}]).error
    assert error["kind"] == "http_400" and "maximum context length" in error["message"]
