"""What the client does with connections, keys, loops and other paths than chat completions."""

import asyncio
import gc
import threading
import tracemalloc

import pytest

import prefixkit
from prefixkit.errors import ProbeError
from prefixkit.probe import Client
from prefixkit.probe.reading import TEXT_LIMIT
from tests.fakes.wire import (
    CERTIFICATE,
    CUT,
    DONE,
    END,
    GOOD,
    SSE_HEAD,
    WireServer,
    answer,
    chunk,
    delta,
    stream,
    usage,
)
from tests.probe.conftest import QUESTION


def test_client_and_probe_are_public_names():
    assert prefixkit.Client is Client and prefixkit.Probe.__name__ == "Probe"


def test_a_request_says_what_was_asked_and_nothing_else():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        client.probe(QUESTION)
        client.probe(
            QUESTION, max_tokens=3, temperature=0.5, seed=7, cache_salt="s", ignore_eos=True, extra_body={"n": 1}
        )
    plain, full = (r.json for r in server.requests)
    common = {"model": "m", "messages": QUESTION, "stream": True, "stream_options": {"include_usage": True}}
    assert plain == {**common, "max_tokens": 1, "temperature": 0.0}
    extra = {"max_tokens": 3, "temperature": 0.5, "seed": 7, "cache_salt": "s", "ignore_eos": True, "n": 1}
    assert full == {**common, **extra}


def test_the_field_of_the_token_limit_can_be_named():
    with WireServer(GOOD) as server, Client(server.url, "m", max_tokens_field="max_completion_tokens") as client:
        client.probe(QUESTION, max_tokens=5)
    assert server.requests[0].json["max_completion_tokens"] == 5 and "max_tokens" not in server.requests[0].json


def test_a_record_holds_the_fields_of_the_record_format_and_no_text(ask):
    record = ask(GOOD).record()
    assert set(record) == {
        "ttft_ms", "content_ms", "e2e_ms", "prompt_tokens", "cached_tokens", "completion_tokens", "timings", "server",
        "attempt", "warnings", "error", "at",
    }  # fmt: skip
    assert record["cached_tokens"] == 0 and record["attempt"] == 1 and record["warnings"] == []


def test_the_key_is_sent_stripped_and_no_key_means_no_header(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    with WireServer(GOOD) as server:
        with Client(server.url, "m", " sk-mine\n") as client:
            client.probe(QUESTION)
        with Client(server.url, "m") as client:
            client.probe(QUESTION)
    with_key, without = (r.headers for r in server.requests)
    assert with_key["authorization"] == "Bearer sk-mine"
    assert "authorization" not in without and "openai-organization" not in without


@pytest.mark.parametrize(("key", "model"), [("", "m"), (" ", "m"), (None, " ")])
def test_an_unusable_key_or_model_is_refused_before_any_call(key, model):
    with pytest.raises(ProbeError):
        Client("http://127.0.0.1:9/v1", model, key)


def test_connections_are_kept_and_opening_one_is_timed_apart():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        first, second = client.probe(QUESTION), client.probe(QUESTION)
        assert server.connections == 1
    assert first.timings["connect"] > 0 and second.timings["connect"] == 0


def test_an_idle_connection_that_the_server_closed_is_replaced():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        client.probe(QUESTION)
        server.drop_connections()
        probe = client.probe(QUESTION)
        assert server.connections == 2
    assert probe.error is None


def test_a_kept_connection_that_closes_under_a_request_costs_a_second_attempt_and_a_warning():
    with WireServer(GOOD, [CUT], GOOD) as server, Client(server.url, "m") as client:
        client.probe(QUESTION)
        probe = client.probe(QUESTION)
    assert probe.error is None and probe.attempt == 2 and "sent again" in probe.warnings[0]


def test_probing_works_inside_a_running_loop_both_ways():
    async def main():
        blocking = client.probe(QUESTION)
        several = await asyncio.gather(*(client.aprobe(QUESTION) for _ in range(4)))
        return [blocking, *several]

    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        assert [p.error for p in asyncio.run(main())] == [None] * 5


def test_probing_works_from_several_threads_at_once():
    probes = []
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        threads = [threading.Thread(target=lambda: probes.append(client.probe(QUESTION))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [p.error for p in probes] == [None] * 8


def test_256_streams_at_once_are_all_held():
    together = threading.Barrier(256, timeout=60)
    script = [SSE_HEAD, chunk(delta(role="assistant", content="")), together.wait, *stream(delta(content="x"))[1:-1]]
    script += [together.wait, *stream(delta("stop", content="y"), usage(3, 2), DONE)[1:]]

    async def main():
        return await asyncio.gather(*(client.aprobe(QUESTION) for _ in range(256)))

    with WireServer(script) as server, Client(server.url, "m") as client:
        probes = asyncio.run(main())
    assert [p.error for p in probes] == [None] * 256
    assert {p.text for p in probes} == {"xy"}


def test_memory_does_not_grow_with_the_length_of_the_output():
    one = chunk(b"".join(delta(content="word " * 40) for _ in range(50)))

    def peak(pieces):
        script = [SSE_HEAD, *[one] * pieces, chunk(delta("stop")), chunk(usage(3, 50 * pieces)), chunk(DONE), END]
        with WireServer(script) as server, Client(server.url, "m") as client:
            client.probe(QUESTION)
            gc.collect()
            tracemalloc.start()
            probe = client.probe(QUESTION)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert probe.error is None and len(probe.text) == TEXT_LIMIT
        return most

    assert peak(200) < peak(20) + 2_000_000


def test_https_is_stamped_too(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    long = "x" * 300_000
    with WireServer(GOOD, tls=True) as server, Client(server.url.replace("127.0.0.1", "localhost"), "m") as client:
        first, second = (client.probe([{"role": "user", "content": long}]) for _ in range(2))
        assert server.connections == 1 and server.requests[0].json["messages"][0]["content"] == long
    assert first.error is None and second.error is None and first.timings["connect"] > 0


def test_a_certificate_that_is_not_trusted_is_a_tls_failure():
    with WireServer(GOOD, tls=True) as server, Client(server.url, "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error["kind"] == "tls" and "SSL_CERT_FILE" in probe.error["message"]


def test_ipv6_addresses_work():
    with WireServer(GOOD, host="::1") as server, Client(server.url, "m") as client:
        assert client.probe(QUESTION).error is None


def test_a_proxy_of_the_environment_carries_other_hosts_and_its_failure_is_named(monkeypatch):
    with WireServer(GOOD) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        with Client("http://model.invalid/v1", "m") as client:
            assert client.probe(QUESTION).error is None
        request = proxy.requests[0]
        assert request.line.startswith("POST http://model.invalid/v1/chat/completions")
        assert request.headers["proxy-authorization"].startswith("Basic ")
    with Client("http://model.invalid/v1", "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error["kind"] == "proxy" and "http_proxy" in probe.error["message"]


def test_https_goes_through_a_tunnel_and_a_refusal_is_named(monkeypatch):
    with WireServer(answer(407, {})) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        with Client("https://model.invalid/v1", "m") as client:
            probe = client.probe(QUESTION)
        assert proxy.requests[0].line.startswith("CONNECT model.invalid:443")
    assert probe.error["kind"] == "proxy" and "407" in probe.error["message"]


def test_tokens_models_and_version_come_from_the_servers_own_paths():
    paths = {
        "/tokenize": answer(200, {"count": 2, "tokens": [5, 6]}),
        "/detokenize": answer(200, {"prompt": "a b"}),
        "/v1/models": answer(200, {"data": [{"id": "m", "max_model_len": 4096}]}),
        "/version": answer(200, {"version": "0.32.0"}),
    }
    with WireServer(GOOD, by_path=paths) as server, Client(server.root, "m", "sk-mine") as client:
        assert client.tokenize("a b") == [5, 6] and client.tokenize(QUESTION) == [5, 6]
        assert client.detokenize([5, 6]) == "a b"
        assert client.models() == [{"id": "m", "max_model_len": 4096}]
        assert client.version() == "0.32.0"
        text, chat = server.requests[0].json, server.requests[1].json
        assert all(r.headers["authorization"] == "Bearer sk-mine" for r in server.requests)
    assert text == {"model": "m", "prompt": "a b", "add_special_tokens": False}
    assert chat == {"model": "m", "messages": QUESTION, "add_generation_prompt": True}


def test_a_server_without_those_paths_raises_with_url_and_remedy_or_has_no_version():
    with WireServer(answer(404, {"detail": "Not Found"})) as server, Client(server.url, "m") as client:
        with pytest.raises(ProbeError, match="/tokenize answered 404: Not Found"):
            client.tokenize("a")
        assert client.version() is None
    with Client(server.url, "m") as client, pytest.raises(ProbeError, match="cannot connect"):
        client.models()
