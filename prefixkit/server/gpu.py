"""What nvidia-smi says of GPU memory; everything is empty on a machine without it."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass

SLACK_MIB = 512
FALLING_MIB = 64


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds GPU memory."""

    pid: int
    used_mib: int
    name: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.name}, {self.used_mib / 1024:.1f} GiB)"


def _query(what: str) -> list[list[str]]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        done = subprocess.run(
            [tool, f"--query-{what}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode:
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def used_mib() -> dict[str, int]:
    """Return the memory in use of each GPU, MiB, by its index."""
    rows = _query("gpu=index,memory.used")
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def holders() -> list[Holder]:
    """Return the processes that hold GPU memory, as far as the driver tells."""
    rows = _query("compute-apps=pid,used_memory,process_name")
    return [
        Holder(int(row[0]), int(row[1]), row[2])
        for row in rows
        if len(row) >= 3 and row[0].isdigit() and row[1].isdigit()
    ]


def wait_settled(timeout_s: float = 30.0) -> None:
    """Wait while GPU memory is still being given back, say by a server whose notebook was killed."""
    end = time.monotonic() + timeout_s
    before = used_mib()
    while before and time.monotonic() < end:
        time.sleep(0.5)
        now = used_mib()
        if all(now.get(i, 0) >= used - FALLING_MIB for i, used in before.items()):
            return
        before = now


def wait_released(before: dict[str, int], timeout_s: float = 30.0) -> str:
    """Wait until no GPU holds more than before; return "" or a sentence on what is still held."""
    end = time.monotonic() + timeout_s
    while before:
        now = used_mib()
        held = {i: now[i] - before[i] for i in before if i in now and now[i] > before[i] + SLACK_MIB}
        if not held:
            break
        if time.monotonic() > end:
            who = ", ".join(str(h) for h in holders()) or "processes that the driver does not name"
            gpus = ", ".join(f"GPU {i} holds {mib / 1024:.1f} GiB more" for i, mib in held.items())
            return f"{gpus} than before the server started; holding memory now: {who}"
        time.sleep(0.5)
    return ""
