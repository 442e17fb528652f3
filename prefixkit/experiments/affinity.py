"""Several engines behind one address: what requests find in the cache with and without affinity to an engine.

Arm on only, and only where the server has several engines, each with a cache of its own. One cell a visit,
`affinity/sticky/4/r1`: new prefixes, each asked for several times with a new question, in an order in which prefixes
mix. `balanced` leaves the choice of the engine to the server's own balancer; `sticky` names the engine of each request
in a header, chosen by its prefix. Both routings of a round have the same order, so their requests pair by `position`.
`condition` holds

- `routing`, `concurrency` (users in a closed loop; 1 is one request after the other), `round`, `position` (from 1);
- `prefix` (which), `request` (from 1, of its prefix), `engine` (asked for; null when balanced);
- `predicted_cached_tokens`: block arithmetic for each engine; null where the engine or the order is not known ahead.

A `counters` record with `scope` "sticky/4" counts each visit, engine by engine.
"""

from __future__ import annotations

import random
from collections import Counter

from prefixkit.experiments.ledger import WARMUP
from prefixkit.experiments.prediction import counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import BlockCache
from prefixkit.params.models import Affinity
from prefixkit.probe import closed_loop
from prefixkit.probe.request import Options
from prefixkit.prompts import Message, chat

NAME = "affinity"
ROUTINGS = ("balanced", "sticky")
HEADER = "X-data-parallel-rank"


def run(session: Session) -> None:
    """Make every visit that is not made yet; skip it all where the server has one engine."""
    params = session.params.experiments.affinity
    assert params
    engines = effective(session).engines or 1
    if engines < 2:
        session.skip(NAME, "the server has one engine, so every request has affinity to it")
        return
    left = [visit for number in range(params.repeats) for visit in _round(params, number)]
    left = [visit for visit in left if not session.is_finished(cell_name(*visit))]
    if not left:
        return
    _warm_up(session, params, engines)
    session.expect(NAME, len(left) * params.prefixes * params.requests)
    with counted(session, NAME):
        for routing, users, number in left:
            scope = f"{routing}/{users}"
            with session.cell(cell_name(routing, users, number)), counted(session, NAME, scope, round=number):
                _visit(session, params, routing, users, number, engines)


def cell_name(routing: str, users: int, number: int) -> str:
    """Return the unit of resumption: one routing and number of users in one round."""
    return f"{NAME}/{routing}/{users}/r{number}"


def engine_of(prefix: int, engines: int) -> int:
    """Return the engine that a sticky client asks for: always the same for a prefix, and each for as many."""
    return prefix % engines


def _round(params: Affinity, number: int) -> list[tuple[str, int, int]]:
    visits = [(routing, users, number) for routing in ROUTINGS for users in params.concurrency]
    random.Random(f"{params.seed}/{NAME}/{number}").shuffle(visits)
    return visits


def _warm_up(session: Session, params: Affinity, engines: int) -> None:
    """Let each engine see the prompt's length, and its hit path where two requests are asked for."""
    messages = chat(session.prompts.warmup(params.prefix_tokens), session.prompts.texts.warmup_words[0])
    for engine in range(engines):
        for _ in range(session.params.experiments.warmup_requests):
            session.probe(
                messages,
                experiment=NAME,
                phase=WARMUP,
                target_tokens=params.prefix_tokens,
                max_tokens=params.max_tokens,
                extra_headers={HEADER: str(engine)},
            )


def _order(params: Affinity, users: int, number: int) -> list[int]:
    """Return the prefix of each request; both routings of a round have the same."""
    order = [prefix for prefix in range(params.prefixes) for _ in range(params.requests)]
    random.Random(f"{params.seed}/{NAME}/{users}/{number}").shuffle(order)
    return order


def _visit(session: Session, params: Affinity, routing: str, users: int, number: int, engines: int) -> None:
    texts = [session.prompts.prefix(params.prefix_tokens) for _ in range(params.prefixes)]
    order, asked = _order(params, users, number), session.prompts.texts.follow_ups
    seen: Counter[int] = Counter()
    numbers, requests = [], []
    for prefix in order:
        again, question = divmod(seen[prefix], len(asked))
        seen[prefix] += 1
        numbers.append(seen[prefix])
        requests.append(chat(texts[prefix], f"({again + 1}) {asked[question]}" if again else asked[question]))
    chosen = [engine_of(prefix, engines) if routing == "sticky" else None for prefix in order]
    predicted = _predicted(session, requests, chosen, users)
    options: Options = {
        "max_tokens": params.max_tokens, "temperature": params.temperature, "seed": params.seed, "ignore_eos": True,
    }  # fmt: skip
    headers = [None if engine is None else {HEADER: str(engine)} for engine in chosen]
    timed = closed_loop(session.client, requests, users, headers=headers, **options)
    for i, one in enumerate(timed):
        session.record(
            one.probe,
            experiment=NAME,
            phase="load" if users > 1 else "cold" if numbers[i] == 1 else "warm",
            condition={
                "routing": routing,
                "concurrency": users,
                "round": number,
                "position": i + 1,
                "prefix": order[i],
                "request": numbers[i],
                "engine": chosen[i],
                "predicted_cached_tokens": predicted[i],
            },
            target_tokens=params.prefix_tokens,
            messages=requests[i],
        )


def _predicted(
    session: Session, requests: list[list[Message]], chosen: list[int | None], users: int
) -> list[int | None]:
    """Return what each request finds on the engine that it asks for; nothing where that or the order is not known."""
    block = effective(session).block_size
    caches: dict[int, BlockCache] = {}
    found: list[int | None] = []
    for messages, engine in zip(requests, chosen, strict=True):
        if engine is None or block is None or users > 1:
            found.append(None)
        else:
            cache = caches.setdefault(engine, BlockCache(block))
            found.append(cache.request(session.client.tokenize(messages)))
    return found
