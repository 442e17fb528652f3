import asyncio
import threading
import time

import pytest

from prefixkit.probe import Client, Probe, TimedProbe, closed_loop, open_loop, poisson
from prefixkit.probe.turns import Turns
from tests.fakes.wire import GOOD, SSE_HEAD, WireServer, answer, stream
from tests.probe.conftest import QUESTION


def requests(count):
    return [[{"role": "user", "content": f"question {i}"}] for i in range(count)]


def asked(server):
    return [int(r.json["messages"][0]["content"].split()[1]) for r in server.requests]


def test_a_closed_loop_keeps_as_many_under_way_as_there_are_users():
    together = threading.Barrier(4, timeout=30)
    script = [SSE_HEAD, together.wait, *GOOD[1:]]
    with WireServer(script) as server, Client(server.url, "m") as client:
        timed = closed_loop(client, requests(12), 4, max_tokens=2)
        assert server.connections == 4
    assert [t.probe.error for t in timed] == [None] * 12 and sorted(asked(server)) == list(range(12))
    assert all(t.late_ms >= 0 for t in timed)


def test_a_closed_loop_of_one_is_sequential_and_in_order():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        assert len(closed_loop(client, requests(5), 1)) == 5
        assert server.connections == 1
    assert asked(server) == [0, 1, 2, 3, 4]


def test_failures_are_kept_in_their_places():
    with WireServer(GOOD, answer(500, {}), GOOD) as server, Client(server.url, "m") as client:
        kinds = [t.probe.error and t.probe.error["kind"] for t in closed_loop(client, requests(3), 1)]
    assert kinds == [None, "http_500", None]


def test_an_open_loop_does_not_wait_for_answers_and_keeps_both_starts():
    together = threading.Barrier(6, timeout=30)
    script = [SSE_HEAD, together.wait, *GOOD[1:]]
    moments = [0.0, 0.0, 0.01, 0.02, 0.03, 0.03]
    with WireServer(script) as server, Client(server.url, "m") as client:
        timed = open_loop(client, requests(6), moments)
    assert [t.probe.error for t in timed] == [None] * 6
    assert [t.intended_s for t in timed] == moments
    assert all(t.started_s >= t.intended_s and t.late_ms >= 0 for t in timed)


def test_the_intended_moment_is_told_on_the_clock_too():
    timed = TimedProbe(Probe(at="2026-01-02T03:04:05.250Z"), intended_s=1.0, started_s=1.05)
    assert timed.intended_at == "2026-01-02T03:04:05.200Z"


def test_a_request_made_ready_ahead_opens_its_connection_and_leaves_when_it_is_due():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        due = time.perf_counter_ns() + 50_000_000
        probe, start = client.loop.run(client.timed(QUESTION, due=due, max_tokens=2))
    assert probe.error is None and start >= due
    assert server.connections == 1


def test_work_before_a_request_goes_before_work_after_an_answer():
    order = []

    async def work(name, late):
        await turns.take(late=late)
        order.append(name)

    async def all_of_it():
        await asyncio.gather(work("answer", True), work("answer", True), work("request", False), work("request", False))

    turns = Turns()
    asyncio.run(all_of_it())
    assert order == ["request", "request", "answer", "answer"]


def test_a_request_that_never_left_starts_when_it_was_tried():
    with WireServer(GOOD) as server:
        url = server.url
    with Client(url, "m") as client:
        timed = open_loop(client, requests(1), [0.0])
    assert timed[0].probe.error["kind"] == "connection_refused" and timed[0].started_s >= 0


def test_every_request_needs_its_moment():
    with Client("http://127.0.0.1:9", "m") as client, pytest.raises(ValueError, match="2 requests for 1"):
        open_loop(client, requests(2), [0.0])


def test_unknown_options_are_refused():
    with Client("http://127.0.0.1:9", "m") as client, pytest.raises(TypeError, match="max_token"):
        client.probe(QUESTION, max_token=1)


def test_poisson_arrivals_are_seeded_and_have_their_rate():
    moments = poisson(4001, 20.0, seed=3)
    assert moments == poisson(4001, 20.0, seed=3) != poisson(4001, 20.0, seed=4)
    assert moments[0] == 0 and moments == sorted(moments)
    assert moments[-1] / 4000 == pytest.approx(1 / 20, rel=0.05)


def test_an_empty_load_is_empty():
    with WireServer(stream()) as server, Client(server.url, "m") as client:
        assert closed_loop(client, [], 4) == [] and open_loop(client, [], []) == [] and poisson(0, 1.0, 0) == []


def test_each_request_of_a_closed_loop_may_have_headers_of_its_own():
    with WireServer(GOOD) as server, Client(server.url, "m") as client:
        closed_loop(client, requests(3), 1, headers=[{"X-Rank": "1"}, None, {"X-Rank": "0"}])
        client.probe(QUESTION, extra_headers={"X-Rank": "7"})
    sent = [{k.lower(): v for k, v in r.headers.items()}.get("x-rank") for r in server.requests]
    assert sent == ["1", None, "0", "7"]


def test_as_many_headers_as_requests_are_wanted():
    with Client("http://127.0.0.1:9", "m") as client, pytest.raises(ValueError, match="3 requests for 1"):
        closed_loop(client, requests(3), 1, headers=[None])
