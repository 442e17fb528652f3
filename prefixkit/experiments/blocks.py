"""Block sizes by KV capacities: what granularity and memory cost, on a server for each pair.

Arm on only, one cell a server, `blocks/b32/4096`: several shared prefixes, each first asked cold, then in turn with a
new question each time (`warm`). `condition` holds

- `block_size`, `capacity_tokens` (as the server reports them), `capacity` (as asked for: tokens or a memory share);
- `prefix` (which), `pass`, `shared_tokens` (tokens that the prompt shares with an earlier one of its prefix);
- `tail_tokens`: shared tokens that block arithmetic cannot serve, because they do not fill a block;
- `predicted_cached_tokens`: a least-recently-used pool of that size; fewer than `shared - tail` means evicted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from prefixkit.experiments.own_server import engine_arg, own_server
from prefixkit.experiments.prediction import cache_of, counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import common_prefix
from prefixkit.params.models import Blocks
from prefixkit.prompts import chat

NAME = "blocks"


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
