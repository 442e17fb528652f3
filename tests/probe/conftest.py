"""A client whose reading can be watched, so that a scripted server waits for what the client has seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from prefixkit.probe import Client, Probe, client
from prefixkit.probe.reading import Reading
from tests.fakes.wire import Step, WireServer

QUESTION = [{"role": "user", "content": "What is a prefix?"}]


class Watch:
    """The readings of all attempts, and steps for a server's script."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.changed = threading.Condition()

    def until(self, seen: Callable[[Reading], object], marks: list[int] | None = None) -> Callable[[], None]:
        """Return a step that waits until the newest reading satisfies `seen`, then notes the time."""

        def step() -> None:
            with self.changed:
                assert self.changed.wait_for(lambda: self.readings and seen(self.readings[-1]), timeout=30)
            if marks is not None:
                marks.append(time.perf_counter_ns())

        return step


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()

    class Watched(Reading):
        def __init__(self, due: int = 0) -> None:
            super().__init__(due)
            watch.readings.append(self)

        def on_body(self, data: bytes, stamp: int) -> None:
            super().on_body(data, stamp)
            with watch.changed:
                watch.changed.notify_all()

    monkeypatch.setattr(client, "Reading", Watched)
    return watch


@pytest.fixture
def ask() -> Iterator[Callable[..., Probe]]:
    """Play scripts to a client's requests and return the probe of the (last) one."""

    def play(*scripts: list[Step], times: int = 1, max_tokens: int = 2, **options: object) -> Probe:
        with WireServer(*scripts) as server, Client(server.url, "m", **options) as asker:
            probes = [asker.probe(QUESTION, max_tokens=max_tokens) for _ in range(times)]
        return probes[-1]

    yield play


@pytest.fixture(autouse=True)
def no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
