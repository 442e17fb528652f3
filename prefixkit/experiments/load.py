"""Many users at once: a closed-loop ladder and Poisson arrivals behind shared prefixes.

One cell a step, `load/users/4` or `load/rate/1`; each step has shared prefixes of its own, asked for in turn with a new
question each time, every probe in phase `load` on either arm. `condition` holds

- `step` (`users` or `rate`), `concurrency` (users: each sends its next request when its last one is answered) or
  `rate_per_s` (offered: starts follow a Poisson process, whether or not earlier requests are answered);
- `request` (from 1, in order of start), `prefix` (which shared prefix);
- `intended_at` (ISO), `intended_s` and `started_s` (from the step's beginning): a late start is the client's fault, and
  the time that a request waited for its start is not in its TTFT;
- `first_arrival`: no request of its prefix had its first token when this one started, so they raced for a cold prefix;
- `predicted_cached_tokens`: block arithmetic in order of start.

A `counters` record with `scope` "users/4" counts each step. `prefixkit.stats.load_steps` sums a step up.
"""

from __future__ import annotations

from prefixkit.experiments.prediction import cache_of, counted
from prefixkit.experiments.session import Session
from prefixkit.params.models import Load
from prefixkit.probe import TimedProbe, closed_loop, open_loop, poisson
from prefixkit.probe.request import Options
from prefixkit.prompts import Message, chat
from prefixkit.stats.schedule import Arrival, fell_behind, first_arrivals, lateness_ms

NAME = "load"


def run(session: Session) -> None:
    """Measure every step that is not measured yet."""
    params = session.params.experiments.load
    assert params
    wanted: list[tuple[str, float]] = [("users", n) for n in params.concurrency]
    wanted += [("rate", rate) for rate in params.rates_per_s]
    left = [(kind, value) for kind, value in wanted if not session.is_finished(_cell(kind, value))]
    if not left:
        return
    session.warm_up(NAME, params.prefix_tokens, max_tokens=params.max_tokens)
    session.expect(NAME, len(left) * params.requests)
    with counted(session, NAME):
        for kind, value in left:
            cell = _cell(kind, value)
            with session.cell(cell), counted(session, NAME, cell.removeprefix(f"{NAME}/")):
                _measure(session, params, kind, value)


def _cell(kind: str, value: float) -> str:
    return f"{NAME}/{kind}/{value:g}"


def questions(follow_ups: tuple[str, ...], prefixes: int, count: int) -> list[str]:
    """Return a question for each request such that no prefix gets the same one twice."""
    found = []
    for number in range(count):
        visit, question = divmod(number // prefixes, len(follow_ups))
        found.append(follow_ups[question] if not visit else f"({visit + 1}) {follow_ups[question]}")
    return found


def _measure(session: Session, params: Load, kind: str, value: float) -> None:
    prefixes = [session.prompts.prefix(params.prefix_tokens) for _ in range(params.prefixes)]
    asked = questions(session.prompts.texts.follow_ups, params.prefixes, params.requests)
    requests = [chat(prefixes[i % params.prefixes], question) for i, question in enumerate(asked)]
    options: Options = {
        "max_tokens": params.max_tokens,
        "temperature": params.temperature,
        "seed": params.seed,
        "ignore_eos": True,
    }
    ids = [session.client.tokenize(messages) for messages in requests]
    if kind == "users":
        timed = closed_loop(session.client, requests, int(value), **options)
    else:
        timed = open_loop(session.client, requests, poisson(params.requests, value, params.seed), **options)
    _record(session, params, kind, value, requests, ids, timed)


def _record(
    session: Session,
    params: Load,
    kind: str,
    value: float,
    requests: list[list[Message]],
    ids: list[list[int]],
    timed: list[TimedProbe],
) -> None:
    """Record a step's probes in order of start, with what block arithmetic says in that order."""
    cache = cache_of(session)
    order = sorted(range(len(timed)), key=lambda i: timed[i].started_s)
    arrivals = [
        Arrival(i % params.prefixes, timed[i].intended_s, timed[i].started_s, timed[i].probe.ttft_ms) for i in order
    ]
    if kind == "rate" and (note := fell_behind(lateness_ms(arrivals))):
        session.progress(f"{NAME}: {note}")
    for number, (i, arrival, first) in enumerate(zip(order, arrivals, first_arrivals(arrivals), strict=True), 1):
        session.record(
            timed[i].probe,
            experiment=NAME,
            phase=NAME,
            condition={
                "step": kind,
                "concurrency": int(value) if kind == "users" else None,
                "rate_per_s": value if kind == "rate" else None,
                "request": number,
                "prefix": arrival.prefix,
                "intended_at": timed[i].intended_at,
                "intended_s": round(arrival.intended_s, 6),
                "started_s": round(arrival.started_s, 6),
                "first_arrival": first,
                "predicted_cached_tokens": cache.request(ids[i]) if cache else None,
            },
            target_tokens=params.prefix_tokens,
            messages=requests[i],
        )
