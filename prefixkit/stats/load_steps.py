"""What each step of a load gave: offered against achieved rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from prefixkit.records import Record, probes
from prefixkit.stats.schedule import Arrival, fell_behind, lateness_ms

NAME = "load"


@dataclass(frozen=True, slots=True)
class Step:
    """What one step gave: rates per second, from its first start to its last end; `behind` says that it was late."""

    name: str
    requests: int
    failed: int
    offered_per_s: float | None
    started_per_s: float | None
    finished_per_s: float | None
    output_tokens_per_s: float | None
    behind: str | None


def steps(records: Iterable[Record]) -> list[Step]:
    """Return each measured step of one arm, in the order of measurement."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for probe in probes(records, NAME, NAME):
        groups[str(probe["cell"]).removeprefix(f"{NAME}/")].append(probe)
    return [_step(name, group) for name, group in groups.items()]


def _step(name: str, group: list[Record]) -> Step:
    conditions = [probe["condition"] for probe in group]
    good = [p for p in group if not p["error"] and p["e2e_ms"] is not None]
    starts = [c["started_s"] for c in conditions]
    end = max((p["condition"]["started_s"] + p["e2e_ms"] / 1000 for p in good), default=0.0)
    spent, spread = end - min(starts), max(starts) - min(starts)
    late = lateness_ms([Arrival(0, c["intended_s"], c["started_s"], None) for c in conditions])
    tokens = sum(p["completion_tokens"] or 0 for p in good)
    return Step(
        name=name,
        requests=len(group),
        failed=len(group) - len(good),
        offered_per_s=conditions[0]["rate_per_s"],
        started_per_s=(len(group) - 1) / spread if spread > 0 else None,
        finished_per_s=len(good) / spent if spent > 0 else None,
        output_tokens_per_s=tokens / spent if spent > 0 else None,
        behind=fell_behind(late) if conditions[0]["rate_per_s"] else None,
    )
