"""The process between us and a server: when we die, or the server does, it ends everything that the server started.

Run as a script with the standard library alone: `python guard.py SETTINGS_JSON COMMAND...`. Standard input is the
lifeline: its end means that the parent is gone or wants the server stopped. Being the "child subreaper", every
descendant stays in its tree even after its parent was killed, so its tree is exactly what we started.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
KILL_WAIT_S = 10.0
CLEANUP_TIMEOUT_S = 60.0


def stat_of(pid: int) -> tuple[int, str, str] | None:
    """Return parent, state and start time of a process, or None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0], fields[19]


def descendants(root: int) -> dict[int, str]:
    """Return the live descendants of a process and their start times."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := stat_of(int(entry.name))):
            parent, state, started = stat
            parents.setdefault(parent, []).append((int(entry.name), "" if state in "ZX" else started))
    found: dict[int, str] = {}
    todo = [root]
    while todo:
        for pid, started in parents.get(todo.pop(), []):
            todo.append(pid)
            if started:
                found[pid] = started
    return found


def send(pid: int, started: str, number: int) -> None:
    """Signal a process unless its id now belongs to another one."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            stat = stat_of(pid)
            if stat and stat[2] == started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def oom_kills() -> int | None:
    """Return how often the kernel's OOM killer struck in our control group, or None when that cannot be read."""
    for folder, name in (("", "memory.events"), ("memory", "memory.oom_control")):
        base = Path("/sys/fs/cgroup") / folder
        with contextlib.suppress(OSError):
            lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
            own = [line.split(":", 2)[2].lstrip("/") for line in lines if line.split(":", 2)[1] in ("", "memory")]
            for place in [*(base / path for path in own), base]:
                with contextlib.suppress(OSError):
                    for line in (place / name).read_text("utf-8").splitlines():
                        if line.startswith("oom_kill "):
                            return int(line.split()[1])
    return None


class Guard:
    """One server process, its descendants, and the two pipes to the parent."""

    def __init__(self, settings: dict[str, Any], command: list[str]) -> None:
        self.settings = settings
        self.command = command
        self.exit_code: int | None = None
        self.stopping = False
        self.child: subprocess.Popen[bytes] | None = None
        self.main = 0
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.oom_before = oom_kills()

    def _stop(self, *_: object) -> None:
        self.stopping = True

    def tell(self, **event: Any) -> None:
        """Report to the parent, which may be gone."""
        with contextlib.suppress(OSError):
            os.write(self.settings["status_fd"], (json.dumps(event) + "\n").encode())

    def start(self) -> bool:
        """Start the server in a session of its own; False when its program cannot be run."""
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        log = os.open(self.settings["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # Kept for good: a collected Popen would reap the server behind our back.
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.settings["cwd"],
                start_new_session=True,
                # Last resort when this guard itself is killed: the server is asked to stop.
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0),
            )
        except OSError as error:
            self.tell(event="failed", reason=error.strerror or str(error))
            return False
        finally:
            os.close(log)
        self.main = self.child.pid
        self.tell(event="started", pid=self.main)
        return True

    def reap(self) -> None:
        """Collect every child that ended; note the server's own end."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.main:
                    self.exit_code = os.waitstatus_to_exitcode(status)
                    after = oom_kills()
                    oom = None if after is None or self.oom_before is None else after > self.oom_before
                    self.tell(event="exit", code=self.exit_code, oom=oom)

    def watch(self) -> None:
        """Return when the server ended, or when it must."""
        while self.exit_code is None and not self.stopping:
            ready = select.select([0, self.wake], [], [], 0.5)[0]
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, 4096)
            if 0 in ready and os.read(0, 4096) == b"":
                return
            # A fork of the parent may hold the lifeline open; the parent's own death shows here.
            if os.getppid() != self.settings["parent"]:
                return
            self.reap()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Reap until `done`, for so long at most."""
        end = time.monotonic() + seconds
        while True:
            self.reap()
            if done():
                return True
            if time.monotonic() > end:
                return False
            select.select([self.wake], [], [], 0.05)
            with contextlib.suppress(BlockingIOError):
                os.read(self.wake, 4096)

    def end(self) -> None:
        """Stop the server, then whatever it left, and say what could not be stopped."""
        with contextlib.suppress(OSError):  # the next start waits for this, unless another one is already under way
            fcntl.flock(self.settings["lock_fd"], fcntl.LOCK_EX | fcntl.LOCK_NB)
        for command in self.settings["cleanup"]:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=CLEANUP_TIMEOUT_S,
                )
        me = os.getpid()
        if self.exit_code is None and (stat := stat_of(self.main)):
            send(self.main, stat[2], signal.SIGTERM)
            self.wait(lambda: self.exit_code is not None, self.settings["grace_s"])
        for pid, started in descendants(me).items():
            send(pid, started, signal.SIGTERM)
        self.wait(lambda: not descendants(me), self.settings["leftover_grace_s"])

        def killed() -> bool:
            left = descendants(me)
            for pid, started in left.items():
                send(pid, started, signal.SIGKILL)
            return not left

        self.wait(killed, KILL_WAIT_S)
        self.tell(event="gone", left=sorted(descendants(me)))


def main() -> None:
    """Start, watch, end."""
    guard = Guard(json.loads(sys.argv[1]), sys.argv[2:])
    if guard.start():
        guard.watch()
        guard.end()


if __name__ == "__main__":
    main()
