"""Which requests raced for a cold prefix, and whether the load generator kept its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LATE_MS = 5.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a step: which prefix, when it was meant to start and did (s from the step's start), its TTFT."""

    prefix: int
    intended_s: float
    started_s: float
    ttft_ms: float | None


def first_arrivals(arrivals: Sequence[Arrival]) -> list[bool]:
    """Return, for each request, whether no earlier one of its prefix had its first token when it started.

    Such a request raced for a cold prefix: what it hit depends on how the engine batched it with the others.
    """
    ready: dict[int, float] = {}
    for arrival in arrivals:
        if arrival.ttft_ms is not None:
            first_token_s = arrival.started_s + arrival.ttft_ms / 1000
            ready[arrival.prefix] = min(first_token_s, ready.get(arrival.prefix, first_token_s))
    return [arrival.started_s < ready.get(arrival.prefix, float("inf")) for arrival in arrivals]


def lateness_ms(arrivals: Sequence[Arrival]) -> list[float]:
    """Return by how much each request started after it was meant to."""
    return [1000 * (arrival.started_s - arrival.intended_s) for arrival in arrivals]


def fell_behind(late_ms: Sequence[float]) -> str | None:
    """Return a sentence when more than 1 % of the requests started 5 ms or more late; None when the schedule held."""
    late = [ms for ms in late_ms if ms >= LATE_MS]
    if len(late) * 100 <= len(late_ms):
        return None
    return (
        f"the load generator fell behind: {len(late)} of {len(late_ms)} requests started {LATE_MS:g} ms or more late, "
        f"the worst by {max(late):.0f} ms"
    )
