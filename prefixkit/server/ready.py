"""When is a server ready: the port, /health, /v1/models with the expected id, and one generated token."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from prefixkit.errors import ServerError
from prefixkit.server.http import Http, said

GENERATE_TIMEOUT_S = 600.0
LOOK_PAUSE_S = 0.2
REPEAT_S = 15.0
DEAD = (500, 503)
GENERATE_TRIES = 5

# No measurement begins with these words, so the block that they leave in the cache is nobody's prefix.
_SYSTEM = {"role": "system", "content": "Readiness check of prefixkit."}
_USER = {"role": "user", "content": "Readiness check: answer with one word."}


@dataclass(frozen=True, slots=True)
class Look:
    """How far a server has come: the rung it stands on, whether it is ready."""

    rung: str
    ready: bool = False


@dataclass
class Ladder:
    """The rungs of one server; one that was only attached to must answer at once.

    `owner` raises ServerError when another process answers on the port.
    """

    http: Http
    model: str
    key_source: str = ""
    owner: Callable[[], None] = lambda: None
    attached: bool = False
    _healthy: bool = False
    _unhealthy_looks: int = 0
    _checked_owner: bool = False
    _generation: _Generation | None = None

    def look(self) -> Look:
        """Climb as far as the server lets us; raise ServerError when waiting longer is pointless."""
        parts = urlsplit(self.http.root)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        # A proxy decides for a remote host; only this machine's own ports are tried first.
        if parts.hostname in ("127.0.0.1", "localhost") and not _listens(parts.hostname, port):
            return self._nothing(f"port {port} is not open yet")
        if not self._checked_owner:
            self.owner()
            self._checked_owner = True
        health = self.http.get("/health")
        if health is None:
            return self._nothing("the port is open, /health does not answer yet")
        if health.status_code in DEAD and self._healthy:
            self._unhealthy_looks += 1
            if self._unhealthy_looks > 2:
                raise ServerError(f"the engine died: /health was 200 and is now HTTP {health.status_code}")
            return Look(f"/health turned to HTTP {health.status_code}")
        if health.status_code not in (200, 401, 403, 404):  # a gateway may have no /health
            return Look(f"/health says HTTP {health.status_code}: still loading")
        self._healthy = self._healthy or health.status_code == 200
        self._unhealthy_looks = 0
        return self._generation.look() if self._generation else self._models()

    def _nothing(self, rung: str) -> Look:
        if self.attached:
            raise ServerError(
                f"nothing answers at {self.http.root}",
                "start the server, or mend server.url: is the port right, is a proxy in between?",
            )
        return Look(rung)

    def _models(self) -> Look:
        try:
            response = self.http.request("GET", f"{self.http.api}/models")
        except httpx.HTTPError:
            return Look("/health is fine, /v1/models does not answer yet")
        if response.status_code in (401, 403):
            raise ServerError(*_key_problem(response.status_code, self.key_source))
        if response.status_code == 404:
            raise ServerError(
                f"{self.http.api}/models: HTTP 404, so this is not vLLM's OpenAI server",
                "start `vllm serve` or vllm.entrypoints.openai.api_server; mend server.url",
            )
        ids = _ids(response)
        if response.status_code != 200 or ids is None:
            return Look(f"/v1/models says HTTP {response.status_code}: still loading")
        if self.model not in ids:
            raise ServerError(
                f"the server does not serve {self.model!r} but {', '.join(ids) or 'nothing'}",
                "set model.name to one of these",
            )
        self._generation = _Generation(self.http, self.model)
        return self._generation.look()


class _Generation:
    """One token, asked for in a thread so that a dead server is noticed meanwhile."""

    def __init__(self, http: Http, model: str) -> None:
        self.http = http
        self.model = model
        self.failures = 0
        self.result: httpx.Response | str | None = None
        self._begin()

    def _begin(self) -> None:
        self.result = None
        threading.Thread(target=self._ask, daemon=True, name="prefixkit-ready").start()

    def _ask(self) -> None:
        tries: list[tuple[str, dict[str, Any]]] = [
            ("/chat/completions", {"messages": [_SYSTEM, _USER]}),
            ("/chat/completions", {"messages": [_USER]}),  # templates that refuse a system message
            ("/completions", {"prompt": _USER["content"]}),  # models without a chat template
        ]
        try:
            for path, prompt in tries:
                body = {"model": self.model, "max_tokens": 1, "temperature": 0, **prompt}
                response = self.http.request("POST", f"{self.http.api}{path}", json=body, timeout_s=GENERATE_TIMEOUT_S)
                if response.status_code not in (400, 404, 405, 422):
                    break
            self.result = response
        except httpx.HTTPError as error:
            self.result = f"{type(error).__name__} {error}".strip()

    def look(self) -> Look:
        if self.result is None:
            return Look("the server is alive, waiting for its first token")
        if isinstance(self.result, httpx.Response):
            if self.result.status_code == 200 and _has_choice(self.result):
                return Look("one token was generated", ready=True)
            problem = f"HTTP {self.result.status_code}: {said(self.result)}"
            fatal = self.result.status_code < 500
            loading = self.result.status_code == 503
        else:
            problem, fatal, loading = self.result, False, False
        self.failures += not loading
        if fatal or self.failures >= GENERATE_TRIES:
            raise ServerError(f"the server is alive but does not generate ({problem})", "look at the end of its log")
        self._begin()
        return Look(f"the server is alive but does not generate yet ({problem})")


@dataclass
class Reporter:
    """Say where a start stands: when it moves on, and now and then in between; plain lines, few of them."""

    progress: Callable[[str], object]
    begun: float = field(default_factory=time.monotonic)
    _last: str = ""
    _said_at: float = 0.0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start began."""
        return time.monotonic() - self.begun

    def at(self, rung: str, stage: str) -> None:
        """Report the present rung and the log's stage."""
        now = time.monotonic()
        key = f"{rung}|{stage.partition(' (')[0]}"
        if key != self._last or now - self._said_at >= REPEAT_S:
            self._last, self._said_at = key, now
            self.progress(f"{self.elapsed_s:5.0f} s  {rung}" + (f"; log: {stage}" if stage else ""))


def wait_ready(
    ladder: Ladder,
    *,
    ended: Callable[[float], None],
    stage: Callable[[], str],
    timeout_s: float,
    progress: Callable[[str], object],
) -> float:
    """Wait until ready and return the seconds it took.

    `ended` pauses for so many seconds and raises ServerError once the server's process is over; `stage` is the log's.
    """
    reporter = Reporter(progress)
    while True:
        ended(0)
        look = ladder.look()
        now = stage()
        if look.ready:
            reporter.at(look.rung, "")
            return reporter.elapsed_s
        reporter.at(look.rung, now)
        if reporter.elapsed_s > timeout_s:
            raise ServerError(
                f"not ready after {timeout_s:g} s: {look.rung}" + (f"; the log's last stage: {now}" if now else ""),
                "raise server.ready_timeout_s if it is only slow",
            )
        ended(LOOK_PAUSE_S)


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def _ids(response: httpx.Response) -> list[str] | None:
    try:
        return [str(entry["id"]) for entry in response.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return None


def _has_choice(response: httpx.Response) -> bool:
    try:
        return bool(response.json().get("choices"))
    except (ValueError, AttributeError):
        return False


def _key_problem(status: int, source: str) -> tuple[str, str]:
    if source:
        return (
            f"the server refuses the key from {source} (HTTP {status})",
            f"set {source} in this very process to the server's key and start again",
        )
    return (
        f"the server is alive but asks for an API key (HTTP {status})",
        "put the key into a variable and name that variable in server.api_key_env",
    )
