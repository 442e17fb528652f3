"""How long two readings of large metrics pages take: `python -m tests.bench.metrics_pages` (target: under a second)."""

from __future__ import annotations

import time

from prefixkit import hit_rate
from tests.metrics.pages import counters

TARGET_S = 1.0


def other_series(megabytes: float, engines: int) -> str:
    """Return histogram lines that a reader has to pass over."""
    line = 'vllm:e2e_request_latency_seconds_bucket{{engine="{}",le="{}",model_name="some/long-model-name"}} {}.0\n'
    count = int(megabytes * 1e6 / len(line))
    return "".join(line.format(n % engines, n, n) for n in range(count))


def seconds(before: str | list[str], after: str | list[str]) -> float:
    """Return the time of one hit rate, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        hit_rate(before, after)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print one line per kind of page."""
    big, wide = other_series(5, 100), other_series(0.05, 1)
    before, after = counters([(10, 0)] * 100), counters([(20, 5)] * 100)
    cases = {
        "one page of 5 MB with 100 engines": (before + big, after + big),
        "100 pages of one engine": ([counters([(10, 0)]) + wide] * 100, [counters([(20, 5)]) + wide] * 100),
    }
    for name, pages in cases.items():
        took = seconds(*pages)
        print(f"{name}: {took:.3f} s ({'holds' if took < TARGET_S else 'MISSES'} {TARGET_S:g} s)")


if __name__ == "__main__":
    main()
