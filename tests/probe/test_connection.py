"""Arrivals are stamped when the bytes reach this machine, not when the loop finds time to read them."""

import socket
import threading
import time

import pytest

from prefixkit.probe import Client
from prefixkit.probe.connection import SO_TIMESTAMPNS, keep_stamps_on
from tests.fakes.wire import DONE, WireServer, delta, stream, usage
from tests.probe.conftest import QUESTION


class BusyLoop:
    """Holds a client's loop from the moment that the server is about to send until it has sent."""

    def __init__(self):
        self.client = None
        self.held, self.sent = threading.Event(), threading.Event()
        self.read_after = 0

    async def _hold(self):
        self.held.set()
        self.sent.wait(30)
        self.read_after = time.perf_counter_ns()

    def hold(self):
        threading.Thread(target=lambda: self.client.loop.run(self._hold()), daemon=True).start()
        self.held.wait(30)


@pytest.fixture
def kernel_stamps():
    """Wait until the kernel stamps arrivals: it begins a moment after it is first asked to."""
    deadline = time.monotonic() + 10
    with keep_stamps_on(), socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as sender, server.accept()[0] as receiver:
            receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            stamped = False
            while not stamped and time.monotonic() < deadline:
                sender.send(b"x")
                stamped = bool(receiver.recvmsg(1, 64)[1])
        assert stamped
        yield


@pytest.mark.usefixtures("kernel_stamps")
def test_a_token_that_waits_for_a_busy_loop_keeps_the_time_of_its_arrival(watch):
    busy = BusyLoop()
    role = delta(role="assistant", content="")
    token = [busy.hold, delta("stop", content="x"), busy.sent.set, watch.until(lambda r: r.first_token)]
    script = stream(role, watch.until(lambda r: r.role), *token, usage(3, 1), DONE)
    with WireServer(script) as server, Client(server.url, "m") as busy.client:
        probe = busy.client.probe(QUESTION)
    reading = watch.readings[-1]
    assert probe.error is None and reading.role < reading.first_token
    assert reading.first_token < busy.read_after


def test_without_the_kernels_stamp_the_read_itself_is_stamped(monkeypatch):
    monkeypatch.setattr("prefixkit.probe.connection.SO_TIMESTAMPNS", -SO_TIMESTAMPNS)
    with WireServer(stream(delta("stop", content="x"), usage(3, 1), DONE)) as server, Client(server.url, "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error is None and probe.ttft_ms > 0


def test_a_stamp_of_the_kernel_outside_the_request_is_not_believed(monkeypatch):
    real = time.time_ns
    monkeypatch.setattr("prefixkit.probe.connection.time.time_ns", lambda: real() + 3_600_000_000_000)
    with WireServer(stream(delta("stop", content="x"), usage(3, 1), DONE)) as server, Client(server.url, "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error is None and probe.ttft_ms > 0
