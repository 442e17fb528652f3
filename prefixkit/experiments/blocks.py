"""Block sizes by KV capacities: what granularity and memory cost, on a server for each pair.

Arm on only, one cell a server, `blocks/b32/4096`: several shared prefixes, each first asked cold, then in turn with a
new question each time (`warm`). `condition` holds

- `block_size`, `capacity_tokens` (as the server reports them), `capacity` (as asked for: tokens or a memory share);
- `prefix` (which), `pass`, `shared_tokens` (tokens that the prompt shares with an earlier one of its prefix);
- `tail_tokens`: shared tokens that block arithmetic cannot serve, because they do not fill a block;
- `predicted_cached_tokens`: a least-recently-used pool of that size; fewer than `shared - tail` means evicted.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from prefixkit.experiments.own_server import engine_arg, own_server
from prefixkit.experiments.prediction import cache_of, counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import common_prefix
from prefixkit.params.models import Blocks
from prefixkit.prompts import chat
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


def run(session: Session) -> None:
    """Measure every pair that is not measured yet, each on its own server."""
    params = session.params.experiments.blocks
    assert params
    shares: list[int | float] = [*(params.gpu_memory_utilization or params.capacities)]
    for block in params.block_sizes:
        for capacity in shares:
            cell = f"{NAME}/b{block}/{capacity:g}"
            if session.is_finished(cell):
                continue
            changes = _changes(session, block, capacity)
            with own_server(session, NAME, cell.replace("/", "-"), **changes) as started:
                if started:
                    session.warm_up(NAME, params.prefix_tokens, max_tokens=params.max_tokens)
                    with session.cell(cell), counted(session, NAME, cell.removeprefix(f"{NAME}/")):
                        _measure(session, params, capacity)


def _changes(session: Session, block: int, capacity: int | float) -> dict[str, Any]:
    if isinstance(capacity, float):
        return {"block_size": block, "gpu_memory_utilization": capacity}
    blocks = max(2, capacity // block)
    longest = engine_arg(session.params, "max_model_len")
    fits = (blocks - 1) * block
    return {
        "block_size": block,
        "num_gpu_blocks_override": blocks,
        "max_model_len": min(longest, fits) if isinstance(longest, int) else fits,
    }


def _measure(session: Session, params: Blocks, asked: int | float) -> None:
    found, texts = effective(session), session.prompts.texts
    cache = cache_of(session)
    prefixes = [session.prompts.prefix(params.prefix_tokens) for _ in range(params.prefixes)]
    earlier: dict[int, list[list[int]]] = defaultdict(list)
    for number in range(params.repeats + 1):
        question = texts.follow_ups[number % len(texts.follow_ups)]
        for which, prefix in enumerate(prefixes):
            messages = chat(prefix, question)
            ids = session.client.tokenize(messages)
            shared = max((common_prefix(ids, other) for other in earlier[which]), default=0)
            earlier[which].append(ids)
            session.probe(
                messages,
                experiment=NAME,
                phase="warm" if number else "cold",
                condition={
                    "block_size": found.block_size,
                    "capacity_tokens": found.kv_capacity_tokens,
                    "capacity": asked,
                    "prefix": which,
                    "pass": number,
                    "shared_tokens": shared,
                    "tail_tokens": min(shared, len(ids) - 1) % (found.block_size or 1),
                    "predicted_cached_tokens": cache.request(ids) if cache else None,
                },
                target_tokens=params.prefix_tokens,
                max_tokens=params.max_tokens,
                temperature=params.temperature,
                seed=params.seed,
            )
