import json

import httpx

from prefixkit.probe import Client, closed_loop
from prefixkit.probe.calibrate import known_server
from tests.probe.conftest import QUESTION


def test_it_tells_its_own_delay_in_the_answer_and_in_its_log(tmp_path):
    log = tmp_path / "log.jsonl"
    with known_server("--delay-ms", "3", "--log", str(log)) as url, Client(url, "yardstick") as client:
        probe = client.probe(QUESTION)
        assert client.models() == [{"id": "yardstick", "object": "model"}]
        httpx.post(f"{url}/chat/completions", json={}, headers={"x-request-id": "r1"})
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert probe.error is None and probe.completion_tokens == 4
    assert 3 <= probe.server["ttft_ms"] == first["delay_ms"] <= probe.ttft_ms
    assert second["id"] == "r1"


def test_its_delay_grows_with_the_request_as_asked():
    long = [{"role": "user", "content": "x" * 100_000}]
    with known_server("--delay-ms", "0", "--us-per-kb", "50", "--gap-ms", "1") as url, Client(url, "m") as client:
        short_probe, long_probe = client.probe(QUESTION), client.probe(long)
    assert long_probe.server["ttft_ms"] >= 5 > 0 < short_probe.server["ttft_ms"]
    assert long_probe.e2e_ms >= long_probe.server["ttft_ms"] + 3


def test_many_requests_at_once_are_all_answered():
    with known_server("--delay-ms", "5", "--gap-ms", "1") as url, Client(url, "m") as client:
        timed = closed_loop(client, [QUESTION] * 64, 64)
    assert [t.probe.error for t in timed] == [None] * 64
