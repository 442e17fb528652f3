"""The server's own times of one request, from two readings of /metrics when nobody else used the server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from prefixkit.metrics import MetricsError, fetch, totals
from prefixkit.probe.client import Client
from prefixkit.probe.request import Messages, Options
from prefixkit.probe.result import Probe

_SUMS = {
    "queue_ms": "vllm:request_queue_time_seconds",
    "ttft_ms": "vllm:request_prefill_time_seconds",
    "frontend_ttft_ms": "vllm:time_to_first_token_seconds",
}
_WAIT_S = 1.0

Pages = Sequence[str]


def between(before: Pages, after: Pages) -> dict[str, float] | None:
    """Return the times (ms) of the one request that ended between two readings; None if it was not exactly one.

    `frontend_ttft_ms` counts from the arrival at the API server, `ttft_ms` from being scheduled.
    """
    if _ended(before, after) != 1:
        return None
    times = {}
    for name, series in _SUMS.items():
        old, new = totals(before, f"{series}_sum"), totals(after, f"{series}_sum")
        if old is not None and new is not None:
            times[name] = (new - old) * 1000
    return times or None


def probe_alone(client: Client, metrics_urls: Sequence[str], messages: Messages, **options: Unpack[Options]) -> Probe:
    """Probe; where the answer lacks the server's times, take them from its metrics, if these can be read."""
    try:
        before = fetch(metrics_urls) if metrics_urls else []
    except MetricsError:
        return client.probe(messages, **options)
    probe = client.probe(messages, **options)
    if not before or probe.error is not None or probe.server is not None:
        return probe
    deadline = time.monotonic() + _WAIT_S
    try:
        # The counters follow with the engine's next report, some milliseconds after the answer.
        while _ended(before, after := fetch(metrics_urls)) == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        return replace(probe, server=between(before, after))
    except MetricsError:
        return probe


def _ended(before: Pages, after: Pages) -> float | None:
    series = f"{_SUMS['ttft_ms']}_count"
    old, new = totals(before, series), totals(after, series)
    return None if old is None or new is None else new - old
