"""What each block size with each KV capacity gave, and the setting to take."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from prefixkit.records import Record, probes

NAME = "blocks"
SAME_WITHIN = 0.05


@dataclass(frozen=True, slots=True)
class Setting:
    """What one block size with one capacity gave over its warm requests; `predicted_rate` is the arithmetic's."""

    block_size: int
    capacity_tokens: int
    hit_rate: float
    predicted_rate: float | None
    tail_tokens: float
    ttft_ms: float


def settings(records: Iterable[Record]) -> list[Setting]:
    """Return each measured setting, by block size and capacity; `tail_tokens` is the mean lost by each request."""
    groups: dict[tuple[int, int], list[Record]] = defaultdict(list)
    for probe in probes(records, NAME, "warm"):
        if not probe["error"] and probe["ttft_ms"] is not None and probe["cached_tokens"] is not None:
            condition = probe["condition"]
            groups[condition["block_size"], condition["capacity_tokens"]].append(probe)
    found = []
    for (block, capacity), group in sorted(groups.items()):
        total = sum(p["prompt_tokens"] for p in group)
        predicted = [p["condition"]["predicted_cached_tokens"] for p in group]
        found.append(
            Setting(
                block_size=block,
                capacity_tokens=capacity,
                hit_rate=sum(p["cached_tokens"] for p in group) / total,
                predicted_rate=None if None in predicted else sum(predicted) / total,
                tail_tokens=statistics.fmean(p["condition"]["tail_tokens"] for p in group),
                ttft_ms=statistics.median(p["ttft_ms"] for p in group),
            )
        )
    return found


def recommend(measured: Iterable[Setting]) -> Setting | None:
    """Return the setting of the lowest median TTFT; within 5 % of it the smallest capacity, then the larger block."""
    found = list(measured)
    if not found:
        return None
    best = min(s.ttft_ms for s in found)
    near = [s for s in found if s.ttft_ms <= best * (1 + SAME_WITHIN)]
    return min(near, key=lambda s: (s.capacity_tokens, -s.block_size))
