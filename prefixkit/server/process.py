"""Our side of a guarded server process: start it, notice its end at once, stop it for good."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from prefixkit.errors import ServerError
from prefixkit.server import guard

GRACE_S = 20.0
LEFTOVER_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a server ended: exit code (negative: a signal), and whether the OOM killer struck (None: not known)."""

    code: int
    oom: bool | None = None

    def __str__(self) -> str:
        number = -self.code if self.code < 0 else self.code - 128 if 128 < self.code <= 192 else 0
        if not number:
            return f"exit code {self.code}"
        text = f"killed by signal {number} ({128 + number})"
        if number != signal.SIGKILL:
            return text
        return f"{text}; {'OOM killer confirmed by the control group' if self.oom else 'OOM killer not confirmed'}"


@dataclass
class Process:
    """A server and its guard; `pid` is the server's own process and the id of its session."""

    guard: subprocess.Popen[bytes]
    status_fd: int
    pid: int = 0
    exit: Exit | None = None
    left: list[int] | None = None
    _failure: str = ""
    _closed: bool = False
    _buffer: bytes = b""
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def ended(self) -> bool:
        """Whether the server's own process is over, or its guard is."""
        return self.exit is not None or self._closed

    def wait(self, seconds: float) -> bool:
        """Wait for the server's end, for so long at most; True when it ended."""
        end = time.monotonic() + seconds
        while not self.ended:
            left = end - time.monotonic()
            if not self._read(max(left, 0)) and left <= 0:
                break
        return self.ended

    def _read(self, seconds: float) -> bool:
        with self._lock:
            if self._closed or not select.select([self.status_fd], [], [], seconds)[0]:
                return False
            data = os.read(self.status_fd, 65536)
            if not data:
                self._closed = True
                os.close(self.status_fd)
                return False
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
            return True

    def _take(self, event: dict[str, object]) -> None:
        match event:
            case {"event": "started", "pid": int(pid)}:
                self.pid = pid
            case {"event": "failed", "reason": str(reason)}:
                self._failure = reason
            case {"event": "exit", "code": int(code), "oom": bool() | None as oom}:
                self.exit = Exit(code, oom)
            case {"event": "gone", "left": list(left)}:
                self.left = left

    def members(self) -> set[int]:
        """Return the ids of every process that belongs to the server."""
        return set(guard.descendants(self.guard.pid))

    def stop(self) -> list[int]:
        """End the server and everything that it started; return the ids of what could not be ended."""
        with self._lock:
            if self.guard.stdin and not self.guard.stdin.closed:
                with contextlib.suppress(OSError):
                    self.guard.stdin.close()
            limit = GRACE_S + LEFTOVER_GRACE_S + guard.KILL_WAIT_S + guard.CLEANUP_TIMEOUT_S
            end = time.monotonic() + limit
            while not self._closed and time.monotonic() < end:
                self._read(0.5)
            if not self._closed:
                self.guard.kill()
            self.guard.wait()
            if self.left is None and self.pid:
                self.left = _end_session(self.pid)
            return self.left or []


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    log_path: Path,
    lock_fd: int,
    cleanup: Sequence[Sequence[str]] = (),
) -> Process:
    """Start `argv` under a guard, its output appended to `log_path`."""
    reader, writer = os.pipe()
    settings = {
        "parent": os.getpid(),
        "status_fd": writer,
        "lock_fd": lock_fd,
        "log": str(log_path),
        "cwd": str(cwd),
        "grace_s": GRACE_S,
        "leftover_grace_s": LEFTOVER_GRACE_S,
        "cleanup": [list(command) for command in cleanup],
    }
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, json.dumps(settings), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            pass_fds=(writer, lock_fd),
            start_new_session=True,
        )
    finally:
        os.close(writer)
    process = Process(child, reader)
    try:
        while not process.pid and not process._failure and not process._closed:
            process._read(10)
    except BaseException:
        process.stop()
        raise
    if not process.pid:
        process.stop()
        raise ServerError(
            f"{argv[0]}: cannot be run ({process._failure or 'its guard ended'})", "mend server.command in the profile"
        )
    return process


def _end_session(session: int) -> list[int]:
    """Kill what is left of a session whose guard died; the id of a session is not reused while it has members."""
    end = time.monotonic() + guard.KILL_WAIT_S
    while True:
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process.pid)
                    process.kill()
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
