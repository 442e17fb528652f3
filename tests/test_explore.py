"""The tour runs top to bottom, twice; its server survives an interrupted cell and ends with the kernel.

On the fake server; tests/browser drives the same notebook on real vLLM.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from jupyter_client.manager import KernelManager

from prefixkit import paths
from tests.experiments.support import profile

DEADLINE_S = 120.0
SOURCES = [
    cell.source for cell in nbformat.read(paths.NOTEBOOKS / "explore.ipynb", 4).cells if cell.cell_type == "code"
]
START = next(source for source in SOURCES if "prefixkit.serve(" in source)


class Kernel:
    """A kernel as JupyterLab starts it; `run` returns what a cell showed."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3", transport_encryption="auto")
        self.manager.start_kernel(cwd=str(paths.NOTEBOOKS))
        self.connect()

    def connect(self) -> None:
        """Wait until the kernel answers."""
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE_S)

    def restart(self) -> None:
        """Restart it as the menu does."""
        self.client.stop_channels()
        self.manager.restart_kernel()
        self.connect()

    def execute(self, source: str, on_text: Callable[[str], None] = lambda _: None) -> tuple[dict[str, Any], str]:
        """Run a cell; return its reply and every text that it showed."""
        shown: list[str] = []

        def hook(message: dict[str, Any]) -> None:
            content = message["content"]
            text = content.get("text") or content.get("data", {}).get("text/plain") or ""
            shown.append(text)
            on_text(text)

        reply = self.client.execute_interactive(source, output_hook=hook, timeout=DEADLINE_S)
        return reply["content"], "".join(shown)

    def run(self, source: str) -> str:
        """Run a cell that must not fail."""
        reply, shown = self.execute(source)
        assert reply["status"] == "ok", f"{source}\n{reply.get('ename')}: {reply.get('evalue')}"
        return shown

    def stop(self) -> None:
        """Close it as JupyterLab does."""
        self.client.stop_channels()
        self.manager.shutdown_kernel()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """Return a kernel; it is shut down at the end if the test did not."""
    kernel = Kernel()
    yield kernel
    if kernel.manager.is_alive():
        kernel.stop()


def cells(folder: Path) -> list[str]:
    """Return the tour's code with the fake's profile as its parameter."""
    return [SOURCES[0], f"profile = {str(profile(folder))!r}", *SOURCES[1:]]


def gone(pid: int) -> bool:
    """Wait until a process has ended."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_restart_and_run_all_works_twice_in_a_row_and_no_server_stays(kernel: Kernel, tmp_path: Path) -> None:
    *body, last = cells(tmp_path)
    for final in ("", last):
        shown = [kernel.run(source) for source in body]
        assert "ready after" in "".join(shown)
        pid = int(kernel.run("print(server.pid)"))
        assert psutil.pid_exists(pid)
        if final:
            kernel.run(final)
        else:
            kernel.restart()
        assert gone(pid)


def test_a_server_is_found_again_survives_an_interrupt_and_ends_with_the_kernel(kernel: Kernel, tmp_path: Path) -> None:
    for source in cells(tmp_path)[: SOURCES.index(START) + 4]:
        kernel.run(source)
    pid = int(kernel.run("print(server.pid)"))
    assert "using the running server" in kernel.run(START)

    interrupted, _ = kernel.execute(
        "print('probing', flush=True)\nwhile True:\n    client.probe(messages)",
        on_text=lambda text: kernel.manager.interrupt_kernel() if "probing" in text else None,
    )
    assert interrupted["ename"] == "KeyboardInterrupt"
    assert kernel.run("probe = client.probe(messages); print(probe.error, probe.cached_tokens > 0)") == "None True\n"
    assert int(kernel.run("print(server.pid)")) == pid

    kernel.stop()
    assert gone(pid)
