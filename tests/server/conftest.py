"""Parameters of stand-in servers, and how to see that a process is gone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from prefixkit.params import Params, load_params
from prefixkit.server import Server, lock, process, versions
from prefixkit.server.server import running

STAND_IN = Path(__file__).with_name("stand_in.py")
DEADLINE_S = 30


@pytest.fixture(autouse=True)
def _own_lock_and_short_grace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Stand-ins need not wait for servers that start elsewhere on this machine, nor long for a stubborn process."""
    if request.node.get_closest_marker("real"):
        return
    monkeypatch.setattr(lock, "lock_path", lambda: tmp_path / "start.lock")
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    monkeypatch.setattr(process, "LEFTOVER_GRACE_S", 0.3)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Params]:
    """Return a function that makes the parameters of a stand-in server of a given mode."""
    monkeypatch.setattr(versions, "find", lambda *_: None)  # saves starting its Python once more

    def make(
        mode: str = "ready", *, caching: bool | None = True, env: dict[str, str] | None = None, **server: Any
    ) -> Params:
        return load_params(
            model={"name": "fake", "path": "fake/model"},
            enable_prefix_caching=caching,
            server={
                "command": [sys.executable, str(STAND_IN), mode],
                "ready_timeout_s": 60.0,
                "env": {"STAND_IN_DIR": str(tmp_path), **(env or {})},
                **server,
            },
        )

    return make


@pytest.fixture
def left() -> Callable[[], set[Server]]:
    """Return a function that tells which servers run that this test started: others belong to the whole session."""
    before = set(running())
    return lambda: set(running()) - before


@pytest.fixture
def gone() -> Callable[[int], bool]:
    """Return a function that says whether a process ends before a deadline."""

    def is_gone(pid: int) -> bool:
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            try:
                if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                    return True
            except psutil.NoSuchProcess:
                return True
            time.sleep(0.02)
        return False

    return is_gone


@pytest.fixture
def read_pid(tmp_path: Path) -> Callable[[str], int]:
    """Return a function that waits for a process id that a stand-in wrote."""

    def read(name: str) -> int:
        path = tmp_path / f"{name}.pid"
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            if path.exists() and (text := path.read_text()):
                return int(text)
            time.sleep(0.02)
        raise AssertionError(f"{path} was not written")

    return read
