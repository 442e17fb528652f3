"""What the client itself adds to a run's TTFT, measured when the run has ended and its server is stopped.

One `calibration` record a point: the smallest and the longest prompt sent alone (of `length` where that ran), and the
longest of each number of requests at once. `ttft_p50_ms` is the run's own median there, of the phase with the smallest;
`bottleneck` tells whether the client took a noticeable part of it. Arrivals at a rate are judged by their lateness.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from prefixkit.errors import ProbeError
from prefixkit.experiments.ledger import WARMUP
from prefixkit.probe.calibrate import calibrate
from prefixkit.prompts import Message
from prefixkit.records import Record

if TYPE_CHECKING:
    from prefixkit.experiments.session import Session

BUDGET_S = 4.0
ALONE_DELAY_MS = 5.0
LONGEST_DELAY_MS = 100.0
LIKE = 0.05


@dataclass(frozen=True, slots=True)
class Timed:
    """One request of the run: what it was for, how many bytes of text it sent, with how many others."""

    experiment: str
    phase: str
    prompt_bytes: int
    concurrency: int
    ttft_ms: float


def timed(entry: Record, messages: Sequence[Message]) -> list[Timed]:
    """Return what counts of a probe that was recorded; nothing where it failed, warmed up or came at a rate."""
    condition = entry["condition"]
    if entry["ttft_ms"] is None or entry["error"] or entry["phase"] == WARMUP or not messages:
        return []
    if condition.get("rate_per_s") is not None:
        return []
    size = sum(len(str(message.get("content") or "").encode()) for message in messages)
    together = int(condition.get("concurrency") or 1)
    return [Timed(entry["experiment"], entry["phase"], size, together, entry["ttft_ms"])]


def points(sent: Sequence[Timed]) -> list[tuple[int, int]]:
    """Return the (bytes, concurrency) to calibrate at, the largest first."""
    sizes: dict[int, list[int]] = {}
    for concurrency in {t.concurrency for t in sent}:
        group = [t for t in sent if t.concurrency == concurrency]
        lines = [t.prompt_bytes for t in group if t.experiment == "length"]
        sizes[concurrency] = lines or [t.prompt_bytes for t in group]
    found = {(max(own), concurrency) for concurrency, own in sizes.items()}
    if 1 in sizes:
        found.add((min(sizes[1]), 1))
    return sorted(found, reverse=True)


def median_ttft(sent: Sequence[Timed], prompt_bytes: int, concurrency: int) -> float:
    """Return the median TTFT of the requests like these, of the phase in which it is smallest."""
    phases: dict[str, list[float]] = {}
    for t in sent:
        if t.concurrency == concurrency and abs(t.prompt_bytes - prompt_bytes) <= LIKE * prompt_bytes:
            phases.setdefault(t.phase, []).append(t.ttft_ms)
    return min(median(ttfts) for ttfts in phases.values())


def measure(session: Session, sent: Sequence[Timed]) -> None:
    """Record a calibration for each point of what was sent, as far as some seconds allow."""
    started = time.monotonic()
    for prompt_bytes, concurrency in points(sent):
        if time.monotonic() - started > BUDGET_S:
            session.progress("no time for more calibrations of the client")
            return
        ttft_ms = median_ttft(sent, prompt_bytes, concurrency)
        # Several at once are answered as far apart as in the run, where that does not take long.
        delay_ms = ALONE_DELAY_MS if concurrency == 1 else min(max(ttft_ms, ALONE_DELAY_MS), LONGEST_DELAY_MS)
        try:
            found = calibrate(prompt_bytes, concurrency, delay_ms=delay_ms)
        except ProbeError as error:
            session.progress(f"no calibration of the client: {error}")
            return
        said = found.bottleneck(ttft_ms)
        session.append("calibration", **found.record(), ttft_p50_ms=ttft_ms, bottleneck=said is not None)
        session.progress(str(found))
        if said:
            session.progress(said)
