"""The rungs on which a start stands, and when waiting longer is pointless."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from prefixkit.errors import ServerError
from prefixkit.server.http import Http
from prefixkit.server.ready import Ladder, wait_ready

Answer = tuple[int, Any] | None
MODELS: Answer = (200, {"data": [{"id": "fake"}]})
TOKEN: Answer = (200, {"choices": [{"message": {"content": "yes"}}]})


@dataclass(frozen=True)
class Scripted(Http):
    """A server of which each path answers in turn as told; the last answer stays, None is no answer at all."""

    root: str = "http://server.example"
    answers: dict[str, list[Answer]] = field(default_factory=dict)

    def request(self, method: str, url: str, **_: Any) -> httpx.Response:
        script = self.answers[url.removeprefix(self.root)]
        answer = script.pop(0) if len(script) > 1 else script[0]
        if answer is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(answer[0], json=answer[1], request=httpx.Request(method, url))


def pause(seconds: float) -> None:
    threading.Event().wait(seconds / 20)


def wait(http: Http, lines: list[str], timeout_s: float = 60, stage: Callable[[], str] = lambda: "") -> None:
    wait_ready(Ladder(http, "fake"), ended=pause, stage=stage, timeout_s=timeout_s, progress=lines.append)


def test_each_rung_is_climbed_and_named() -> None:
    http = Scripted(
        answers={
            "/health": [None, (503, {}), (200, {})],
            "/v1/models": [None, (503, {}), MODELS],
            "/v1/chat/completions": [(503, {"error": {"message": "Loading model", "code": 503}}), TOKEN],
        }
    )
    lines: list[str] = []
    wait(http, lines)
    said = [line.split(" s  ", 1)[1] for line in lines if "waiting for its first token" not in line]
    assert said == [
        "the port is open, /health does not answer yet",
        "/health says HTTP 503: still loading",
        "/health is fine, /v1/models does not answer yet",
        "/v1/models says HTTP 503: still loading",
        "the server is alive but does not generate yet (HTTP 503: Loading model)",
        "one token was generated",
    ]


@pytest.mark.parametrize("status", [500, 503])
def test_either_status_of_a_dead_engine_ends_the_wait(status: int) -> None:
    http = Scripted(
        answers={"/health": [(200, {}), (status, {})], "/v1/models": [MODELS], "/v1/chat/completions": [(500, {})]}
    )
    with pytest.raises(ServerError, match=f"the engine died: /health was 200 and is now HTTP {status}"):
        wait(http, [])


def test_a_server_that_never_generates_times_out_saying_so_with_the_logs_last_stage() -> None:
    answered = threading.Event()

    class Silent(Scripted):
        def request(self, method: str, url: str, **_: Any) -> httpx.Response:
            if method == "POST":
                answered.wait()
            return super().request(method, url)

    http = Silent(answers={"/health": [(200, {})], "/v1/models": [MODELS], "/v1/chat/completions": [TOKEN]})
    with pytest.raises(ServerError, match="alive, waiting for its first token; the log's last stage: warming up"):
        wait(http, [], timeout_s=0, stage=lambda: "warming up")
    answered.set()


def test_a_server_without_openai_paths_is_named_at_once() -> None:
    http = Scripted(answers={"/health": [(200, {})], "/v1/models": [(404, {"detail": "Not Found"})]})
    with pytest.raises(ServerError, match="not vLLM's OpenAI server"):
        wait(http, [])


def test_a_server_that_refuses_to_generate_is_not_asked_for_ever() -> None:
    http = Scripted(
        answers={"/health": [(200, {})], "/v1/models": [MODELS], "/v1/chat/completions": [(401, {"error": "no"})]}
    )
    with pytest.raises(ServerError, match=r"alive but does not generate \(HTTP 401: no\)"):
        wait(http, [])
