"""Does the load generator keep its schedule? `python -m tests.bench.load_schedule [--rate 200] [--seconds 10]`

Poisson arrivals against a mock in a process of its own on this machine. Prints how late requests started (their first
byte left, against their intended moment), how late this machine wakes a sleeper, and what the generator itself says;
exits 1 when p99 is 5 ms or more and it did not say that it fell behind.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

from prefixkit.errors import ProbeError
from prefixkit.probe import Client, open_loop, poisson
from prefixkit.server.ports import choose
from prefixkit.stats.schedule import LATE_MS, fell_behind


def main() -> int:
    """Run the load and print what it kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    port = choose("auto")
    mock = subprocess.Popen([sys.executable, "-m", "tests.fakes.vllm", "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        with Client(f"http://127.0.0.1:{port}/v1", "fake") as client:
            model = _wait_for_model(client)
        with Client(f"http://127.0.0.1:{port}/v1", model) as client:
            count = int(args.rate * args.seconds)
            requests = [[{"role": "user", "content": f"question {n}"}] for n in range(count)]
            open_loop(client, requests[:20], [0.0] * 20)
            timed = open_loop(client, requests, poisson(count, args.rate, args.seed))
    finally:
        mock.terminate()
        mock.wait()
    woken = _wake_ups(2000)
    late = np.array([t.late_ms for t in timed])
    failed = sum(1 for t in timed if t.probe.error)
    spread = max(t.started_s for t in timed) - min(t.started_s for t in timed)
    p50, p99 = np.quantile(late, [0.5, 0.99])
    said = fell_behind(list(late))
    print(f"{count} requests, {failed} failed; offered {args.rate:g}/s, started {(count - 1) / spread:.1f}/s")
    print(f"start late by: p50 {p50:.2f} ms, p99 {p99:.2f} ms, most {late.max():.2f} ms")
    print(f"a process that only sleeps wakes late by: p99 {np.quantile(woken, 0.99):.2f} ms, most {max(woken):.2f} ms")
    print(said or "the generator kept its schedule")
    return 0 if p99 < LATE_MS or said else 1


def _wake_ups(count: int) -> list[float]:
    """Return by how many milliseconds a sleep of one overran, which no generator on this machine can do better than."""
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        time.sleep(0.001)
        found.append((time.perf_counter() - begun) * 1000 - 1)
    return found


def _wait_for_model(client: Client) -> str:
    """Return the mock's model once it answers."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return str(client.models()[0]["id"])
        except ProbeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
