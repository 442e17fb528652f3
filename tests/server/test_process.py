"""Whatever dies, nothing of ours stays, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from prefixkit.errors import ServerError
from prefixkit.server import guard, process
from prefixkit.server.lock import start_lock
from prefixkit.server.process import Exit, Process

Gone = Callable[[int], bool]
ReadPid = Callable[[str], int]
STAND_IN = Path(__file__).with_name("stand_in.py")
ROOT = STAND_IN.parents[2]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def run(*argv: str, cleanup: tuple[tuple[str, ...], ...] = ()) -> Process:
        env = {**os.environ, "STAND_IN_DIR": str(tmp_path)}
        with start_lock(10, print) as lock_fd:
            child = process.start(
                argv, env=env, cwd=tmp_path, log_path=tmp_path / "a.log", lock_fd=lock_fd, cleanup=cleanup
            )
        started.append(child)
        return child

    yield run
    for child in started:
        child.stop()


def stand_in(mode: str) -> tuple[str, ...]:
    return (sys.executable, str(STAND_IN), mode, "--port", "0")


def test_a_killed_server_takes_its_orphans_along(start: Callable[..., Process], gone: Gone, read_pid: ReadPid) -> None:
    child = start(*stand_in("orphan"))
    orphan = read_pid("orphan")
    assert child.pid == read_pid("main") and orphan in child.members()
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(30) and child.exit is not None and child.exit.code == -9
    assert gone(orphan)
    assert child.stop() == []


def test_stop_ends_a_server_that_ignores_the_polite_signal(
    start: Callable[..., Process], gone: Gone, read_pid: ReadPid
) -> None:
    child = start(*stand_in("stubborn+orphan"))
    orphan = read_pid("orphan")
    assert child.stop() == [] and child.stop() == []
    assert gone(child.pid) and gone(orphan)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_the_death_of_our_own_process_ends_the_server(
    number: signal.Signals, tmp_path: Path, gone: Gone, read_pid: ReadPid
) -> None:
    code = f"""
import os, signal
from pathlib import Path
from prefixkit.server import process
here = Path({str(tmp_path)!r})
process.GRACE_S = process.LEFTOVER_GRACE_S = 0.3
lock = os.open(here / "lock", os.O_RDONLY | os.O_CREAT)
process.start({stand_in("orphan")!r}, env={{**os.environ, "STAND_IN_DIR": str(here)}}, cwd=here,
              log_path=here / "a.log", lock_fd=lock)
if os.fork() == 0:  # holds every pipe of its parent open, as a worker pool of a notebook would
    signal.pause()
signal.pause()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        main, orphan = read_pid("main"), read_pid("orphan")
        forked = [p.pid for p in psutil.Process(parent.pid).children() if guard.__file__ not in p.cmdline()]
    finally:
        parent.send_signal(number)
        parent.wait()
    try:
        assert gone(main) and gone(orphan)
    finally:
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_a_killed_guard_leaves_no_server_behind(start: Callable[..., Process], gone: Gone, read_pid: ReadPid) -> None:
    child = start(*stand_in("stubborn"))
    main = read_pid("main")
    child.guard.kill()
    assert child.wait(30) and child.exit is None
    assert child.stop() == [] and gone(main)


def test_only_our_own_processes_are_signalled(start: Callable[..., Process], read_pid: ReadPid) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()", "vllm serve"])
    try:
        child = start(*stand_in("orphan"))
        read_pid("orphan")
        assert bystander.pid not in child.members()
        child.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_process_id_that_was_reused_is_not_signalled() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    try:
        guard.send(bystander.pid, "1", signal.SIGKILL)
        assert bystander.poll() is None
        started = guard.stat_of(bystander.pid)
        assert started
        guard.send(bystander.pid, started[2], signal.SIGKILL)
        assert bystander.wait(30) == -9
    finally:
        bystander.kill()


def test_cleanup_commands_run_when_the_server_ends(start: Callable[..., Process], tmp_path: Path) -> None:
    mark = tmp_path / "cleaned"
    child = start(*stand_in("ready"), cleanup=(("touch", str(mark)),))
    child.stop()
    assert mark.exists()


def test_the_next_start_waits_until_a_dying_server_is_gone(start: Callable[..., Process], tmp_path: Path) -> None:
    go, began = tmp_path / "go", tmp_path / "began"
    wait_for_go = f"touch '{began}'; until [ -e '{go}' ]; do sleep 0.02; done"
    child = start(*stand_in("ready"), cleanup=(("sh", "-c", wait_for_go),))
    os.kill(child.pid, signal.SIGKILL)
    while not began.exists():
        child.wait(0.02)
    with pytest.raises(ServerError, match="another server was starting or stopping"), start_lock(0, print):
        pass
    go.touch()
    with start_lock(30, print):
        assert child.stop() == []


def test_a_program_that_cannot_run_is_an_error_with_its_reason(start: Callable[..., Process], tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="cannot be run \\(Permission denied\\)"):
        start(str(tmp_path))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Exit(1), "exit code 1"),
        (Exit(-9), "killed by signal 9 (137); OOM killer not confirmed"),
        (Exit(137), "killed by signal 9 (137); OOM killer not confirmed"),
        (Exit(-9, False), "killed by signal 9 (137); OOM killer not confirmed"),
        (Exit(-9, True), "killed by signal 9 (137); OOM killer confirmed by the control group"),
        (Exit(-11), "killed by signal 11 (139)"),
    ],
)
def test_an_exit_is_described_without_guessing(found: Exit, text: str) -> None:
    assert str(found) == text
