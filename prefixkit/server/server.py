"""`serve`: one running vLLM server as an object, from start to nothing left behind."""

from __future__ import annotations

import atexit
import html
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from prefixkit.errors import ServerError
from prefixkit.params import Params
from prefixkit.server import docker, gpu, ports
from prefixkit.server.command import Command
from prefixkit.server.effective import Effective
from prefixkit.server.failure import death, shown
from prefixkit.server.http import Http
from prefixkit.server.log import Log
from prefixkit.server.process import Process
from prefixkit.server.ready import DEAD
from prefixkit.server.reset import Reset, reset_prefix_cache

Progress = Callable[[str], object]
PORT_FREE_S = 5.0


@dataclass(eq=False)
class Server:
    """A server that answers; leaving its `with` block, or `stop()`, ends it (unless it was only attached to)."""

    url: str
    root_url: str
    metrics_urls: tuple[str, ...]
    model: str
    params: Params = field(repr=False)
    effective: Effective = field(default_factory=Effective)
    argv: tuple[str, ...] = ()
    log_path: Path | None = None
    api_key: str | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    scoped: bool = field(default=False, repr=False)
    _http: Http | None = field(default=None, repr=False)
    _process: Process | None = field(default=None, repr=False)
    _command: Command | None = field(default=None, repr=False)
    _log: Log | None = field(default=None, repr=False)
    _gpu_before: dict[str, int] = field(default_factory=dict, repr=False)
    _progress: Progress = field(default=print, repr=False)
    _stopped: bool = field(default=False, repr=False)
    _owner_pid: int = field(default_factory=os.getpid, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def metrics_url(self) -> str:
        """The first metrics page."""
        return self.metrics_urls[0]

    @property
    def pid(self) -> int | None:
        """The server's own process, None for one that we only attached to."""
        return self._process.pid if self._process else None

    @property
    def port(self) -> int:
        """The port of `root_url`."""
        return int(self.root_url.rpartition(":")[2])

    @property
    def alive(self) -> bool:
        """Whether it was neither stopped nor died."""
        return not self._stopped and not (self._process and self._process.wait(0))

    def check(self) -> None:
        """Raise ServerError with the root cause when the server died, or its engine did behind a live port."""
        if self._stopped:
            raise ServerError(f"the server at {self.root_url} was stopped", "start it again")
        if self._process and self._log and self._process.wait(0):
            raise death(self._process, self._log, self._command, "died")
        health = self._client().get("/health", timeout_s=10)
        if health is None:
            raise ServerError(f"the server at {self.root_url} does not answer", self._see_log("start it again"))
        if health.status_code in DEAD:
            raise ServerError(
                f"the server is alive but its engine is dead (/health: HTTP {health.status_code})",
                self._see_log("start it again"),
            )

    def reset_prefix_cache(self) -> Reset:
        """Ask the server to forget its cached prefixes, and find out whether it did."""
        return reset_prefix_cache(self._client(), self.metrics_urls, self.model, self.effective)

    def stop(self) -> None:
        """End the server and all that it started; raise ServerError naming what is left. Harmless when repeated."""
        with self._lock:
            if self._stopped or os.getpid() != self._owner_pid:
                return
            self._stopped = True
            _running.discard(self)
            if self._process is None:
                return
            left = self._process.stop()
            problems = []
            if left:
                names = ", ".join(ports.name_of(pid) for pid in left)
                problems.append(f"could not be ended: {names}")
            if self._command and self._command.cleanup and (name := docker.left_over(self._command)):
                problems.append(f"container {name} still exists")
            end = time.monotonic() + PORT_FREE_S
            while not problems and not ports.is_free(self.port):
                if time.monotonic() > end:
                    problems.append(f"port {self.port} is still taken")
                time.sleep(0.05)
            if held := gpu.wait_released(self._gpu_before):
                self._progress(f"note: {held}")
            if problems:
                raise ServerError(f"the server at {self.root_url}: {'; '.join(problems)}", "end it by hand")

    def __enter__(self) -> Server:
        self.scoped = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except ServerError as problem:
            if error is None:
                raise
            self._progress(f"note: {problem}")

    def _client(self) -> Http:
        return self._http or Http(self.root_url, self.api_key, self.url)

    def _see_log(self, remedy: str) -> str:
        return f"{remedy}; whole log: {shown(self.log_path)}" if self.log_path else remedy

    def summary(self) -> dict[str, Any]:
        """Return what a person or a record wants to know of the server; no key among it."""
        return {
            "url": self.url,
            "metrics_url": self.metrics_url,
            "metrics_urls": list(self.metrics_urls),
            "model": self.model,
            "pid": self.pid,
            "log_path": str(self.log_path) if self.log_path else None,
            "argv": list(self.argv),
            "notes": list(self.notes),
            "effective": asdict(self.effective),
        }

    def _rows(self) -> dict[str, str]:
        """Return what is worth showing, as text."""
        rows = {"state": "running" if self.alive else "stopped", **self.summary()}
        effective = rows.pop("effective")
        rows["argv"] = " ".join(self.argv)
        rows["metrics_urls"] = ", ".join(self.metrics_urls)
        rows["notes"] = "; ".join(self.notes)
        return {str(key): str(value) for key, value in {**rows, **effective}.items() if value not in (None, "")}

    def __repr__(self) -> str:
        return "\n".join(["Server", *(f"  {key}: {value}" for key, value in self._rows().items())])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(key)}</th><td>{html.escape(value)}</td></tr>" for key, value in self._rows().items()
        )
        return f"<table><thead><tr><th>server</th><th>value</th></tr></thead><tbody>{cells}</tbody></table>"


_running: set[Server] = set()


def running() -> list[Server]:
    """Return the servers that this process started and did not stop."""
    return [server for server in list(_running) if os.getpid() == server._owner_pid]


def register(server: Server) -> None:
    """Remember a server so that the end of this process ends it."""
    _running.add(server)


@atexit.register
def _stop_all() -> None:
    for server in running():
        server.stop()
