"""What this client adds to a TTFT, measured on this machine at a run's own prompt size and concurrency."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from prefixkit.errors import ProbeError
from prefixkit.probe import yardstick
from prefixkit.probe.client import Client
from prefixkit.probe.load import closed_loop

BOTTLENECK_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """Overhead of the client (its TTFT less the server's own delay) over `n` requests to a server of known delay."""

    prompt_bytes: int
    concurrency: int
    n: int
    overhead_p50_ms: float
    overhead_p99_ms: float

    def __str__(self) -> str:
        return (
            f"client overhead at {self.prompt_bytes / 1000:.1f} KB and {self.concurrency} at once:"
            f" p50 {self.overhead_p50_ms:.2f} ms, p99 {self.overhead_p99_ms:.2f} ms (n = {self.n})"
        )

    def record(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return asdict(self)

    def bottleneck(self, ttft_p50_ms: float | None) -> str | None:
        """Say so when the client itself took a noticeable part of a run's TTFT."""
        if ttft_p50_ms is None or self.overhead_p50_ms <= BOTTLENECK_SHARE * ttft_p50_ms:
            return None
        return (
            f"the client was the bottleneck: it took {self.overhead_p50_ms:.2f} ms of a median TTFT of"
            f" {ttft_p50_ms:.2f} ms; use fewer at once, or a faster or quieter machine"
        )


def quantile(values: list[float], q: float) -> float:
    """Return the value below which a share `q` of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-q * len(ordered) // 1) - 1))]


@contextmanager
def known_server(*options: str) -> Iterator[str]:
    """Run a server of known delay in a process of its own and yield its URL."""
    command = [sys.executable, "-I", str(yardstick.__file__), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise ProbeError("the calibration server did not start", f"run {' '.join(command)} to see why")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def calibrate(prompt_bytes: int, concurrency: int = 1, *, n: int = 20, delay_ms: float = 20.0) -> Calibration:
    """Measure the client's overhead at a prompt size (bytes of text) and a concurrency."""
    messages = [{"role": "user", "content": "x" * max(1, prompt_bytes)}]
    count = max(n, 2 * concurrency)
    with known_server("--delay-ms", str(delay_ms)) as url, Client(url, "yardstick") as client:
        closed_loop(client, [messages] * (concurrency + 2), concurrency)
        timed = closed_loop(client, [messages] * count, concurrency)
    overheads = [
        t.probe.ttft_ms - t.probe.server["ttft_ms"]
        for t in timed
        if t.probe.ttft_ms is not None and t.probe.server is not None
    ]
    if not overheads:
        raise ProbeError("the calibration gave no answer", "is 127.0.0.1 blocked on this machine?")
    return Calibration(prompt_bytes, concurrency, len(overheads), median(overheads), quantile(overheads, 0.99))
