"""A working set around the KV capacity: where the cache stops helping, on a small server of its own.

Arm on only, one cell a working set, `eviction/cyclic/1.3`: distinct prompts once each (`cold`), then `passes` times
over in the given order (`warm`). `condition` holds

- `order`, `ratio` (asked for), `pass` (0 is the cold one), `prefix` (which prompt), `prompts` (how many);
- `working_set_tokens`: the prompts in whole blocks; `capacity_tokens`: what the server reports; `load`: their quotient;
- `predicted_cached_tokens`: a least-recently-used pool of that size, over all that this server has seen.

A `counters` record with `scope` "cyclic/1.3" counts each cell; one with `scope` "all" counts the whole experiment.
"""

from __future__ import annotations

from dataclasses import dataclass

from prefixkit.experiments.orders import order, prompts_for
from prefixkit.experiments.own_server import engine_arg, known_block_size, own_server
from prefixkit.experiments.prediction import cache_of, counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import BlockCache
from prefixkit.params.models import Eviction
from prefixkit.prompts import Message, chat

NAME = "eviction"


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Distinct prompts and the order in which they are asked for."""

    prompts: list[list[Message]]
    ids: list[list[int]]
    visits: list[tuple[int, int]]

    def tokens(self, block: int) -> int:
        """Return the size of the set in whole blocks."""
        return sum(-(-len(ids) // block) * block for ids in self.ids)

    def uncached(self, block: int, capacity_tokens: int | None) -> int:
        """Return how many tokens must be computed on an empty cache of this capacity."""
        cache = BlockCache(block, capacity_tokens)
        return sum(len(self.ids[prompt]) - cache.request(self.ids[prompt]) for _, prompt in self.visits)


def run(session: Session) -> None:
    """Measure every working set that is not measured yet."""
    params = session.params.experiments.eviction
    assert params
    wanted = [(kind, ratio) for kind in params.orders for ratio in params.ratios]
    left = [(kind, ratio) for kind, ratio in wanted if not session.is_finished(_cell(kind, ratio))]
    if not left:
        return
    changes = {"num_gpu_blocks_override": params.num_gpu_blocks}
    block, longest = known_block_size(session), engine_arg(session.params, "max_model_len")
    if block is not None:
        # vLLM refuses a context that its blocks cannot hold.
        capacity = (params.num_gpu_blocks - 1) * block
        changes["max_model_len"] = min(longest, capacity) if isinstance(longest, int) else capacity
    with own_server(session, NAME, NAME, **changes) as started:
        if started:
            session.warm_up(NAME, params.prefix_tokens, max_tokens=params.max_tokens)
            cache, spent = cache_of(session), 0
            with counted(session, NAME):
                for kind, ratio in left:
                    spent += _measure(session, params, kind, ratio, cache, params.max_uncached_tokens - spent)


def _cell(kind: str, ratio: float) -> str:
    return f"{NAME}/{kind}/{ratio:g}"


def _measure(session: Session, params: Eviction, kind: str, ratio: float, cache: BlockCache | None, budget: int) -> int:
    """Measure one working set and return how many tokens that computed; skip it when that is more than `budget`."""
    found = effective(session)
    block, capacity = found.block_size or 1, found.kv_capacity_tokens
    if capacity is None:
        session.skip(NAME, "the server does not report its KV capacity")
        return 0
    chosen = _working_set(session, params, kind, ratio, block, capacity)
    uncached = chosen.uncached(block, capacity)
    if uncached > budget:
        session.skip(NAME, f"{kind} {ratio:g}: {uncached} uncached tokens are over max_uncached_tokens ({budget} left)")
        return 0
    size = chosen.tokens(block)
    with session.cell(_cell(kind, ratio)), counted(session, NAME, f"{kind}/{ratio:g}", ratio=ratio):
        for number, prompt in chosen.visits:
            ids = chosen.ids[prompt]
            session.probe(
                chosen.prompts[prompt],
                experiment=NAME,
                phase="warm" if number else "cold",
                condition={
                    "order": kind,
                    "ratio": ratio,
                    "pass": number,
                    "prefix": prompt,
                    "prompts": len(chosen.prompts),
                    "working_set_tokens": size,
                    "capacity_tokens": capacity,
                    "load": size / capacity,
                    "predicted_cached_tokens": cache.request(ids) if cache else None,
                },
                target_tokens=params.prefix_tokens,
                max_tokens=params.max_tokens,
                temperature=params.temperature,
                seed=params.seed,
            )
    return uncached


def _working_set(session: Session, params: Eviction, kind: str, ratio: float, block: int, capacity: int) -> WorkingSet:
    question = session.prompts.texts.question
    first = chat(session.prompts.prefix(params.prefix_tokens), question)
    count = prompts_for(ratio, capacity, len(session.client.tokenize(first)), block)
    prompts = [first, *(chat(session.prompts.prefix(params.prefix_tokens), question) for _ in range(count - 1))]
    later = order(kind, count, params.passes, params.seed)
    visits = [(0, n) for n in range(count)] + [(1 + i // count, n) for i, n in enumerate(later)]
    return WorkingSet(prompts, [session.client.tokenize(p) for p in prompts], visits)
