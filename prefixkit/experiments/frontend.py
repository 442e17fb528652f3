"""Cached prompts sent as chat messages and as token ids: what of a TTFT is the API server, what the engine.

Arm on only, one cell a length and round, `frontend/3072/r1`: a new text cold as chat, then in random order the same
prompt as `chat` and as `token_ids` (the ids that `/tokenize` gives for that chat, through `/v1/completions`), alone and
several at once (`warm`). The engine sees the same cached prompt either way; template and tokenizer are in the first
form only. `condition` holds

- `form` (`chat` or `token_ids`), `concurrency` (equal requests sent at once), `round`;
- `tokenize_ms`: what one call of `/tokenize` for this chat took, alone;
- `setting`: the name of a changed server's setting (experiment `tuning`), null on the arm's own server.
"""

from __future__ import annotations

import random
import time
from typing import Any

from prefixkit.experiments.ledger import WARMUP
from prefixkit.experiments.session import Session
from prefixkit.params.models import Frontend
from prefixkit.probe import TokenIds, closed_loop
from prefixkit.probe.request import Options, Prompt
from prefixkit.prompts import Message, chat

NAME = "frontend"
FORMS = ("chat", "token_ids")


def run(session: Session) -> None:
    """Visit every length of every round that is not measured yet."""
    params = session.params.experiments.frontend
    assert params
    visits(session, params, NAME, None)


def visits(session: Session, params: Frontend, experiment: str, setting: str | None) -> None:
    """Make the visits of one server that are not measured yet."""
    left = [
        (number, target)
        for number in range(params.repeats)
        for target in random.Random(f"{params.seed}/{NAME}/{number}").sample(params.lengths, len(params.lengths))
        if not session.is_finished(cell_name(experiment, setting, target, number))
    ]
    if not left:
        return
    session.expect(experiment, len(left) * (1 + len(FORMS) * sum(params.concurrency)))
    # The first of each kind of request, so that nothing is compiled or imported within a measured one.
    _visit(session, params, experiment, {"setting": setting}, max(params.lengths), warming=True)
    for number, target in left:
        with session.cell(cell_name(experiment, setting, target, number)):
            _visit(session, params, experiment, {"setting": setting, "round": number}, target)


def cell_name(experiment: str, setting: str | None, target: int, number: int) -> str:
    """Return the unit of resumption: one length in one round, on one server."""
    return "/".join([experiment, *([setting] if setting else []), str(target), f"r{number}"])


def _visit(
    session: Session,
    params: Frontend,
    experiment: str,
    condition: dict[str, Any],
    target: int,
    *,
    warming: bool = False,
) -> None:
    build = session.prompts.warmup if warming else session.prompts.prefix
    messages = chat(build(target), session.prompts.texts.question)

    def send(phase: str, form: str, concurrency: int, prompt: Prompt, tokenize_ms: float | None) -> bool:
        options: Options = {"max_tokens": params.max_tokens, "temperature": params.temperature}
        timed = closed_loop(session.client, [prompt] * concurrency, concurrency, **options)
        for one in timed:
            session.record(
                one.probe,
                experiment=experiment,
                phase=WARMUP if warming else phase,
                condition={**condition, "form": form, "concurrency": concurrency, "tokenize_ms": tokenize_ms},
                target_tokens=target,
                messages=messages,
            )
        return all(one.probe.error is None for one in timed)

    if not send("cold", "chat", 1, messages, None):
        return
    ids, tokenize_ms = _tokenized(session, messages)
    kinds = [(form, n) for form in FORMS for n in params.concurrency]
    random.Random(f"{params.seed}/{NAME}/{target}/{condition.get('round')}").shuffle(kinds)
    for form, concurrency in kinds:
        send("warm", form, concurrency, ids if form == "token_ids" else messages, tokenize_ms)


def _tokenized(session: Session, messages: list[Message]) -> tuple[TokenIds, float]:
    """Return the chat's token ids and how long the server and the way took to give them."""
    start = time.perf_counter()
    ids = session.client.tokenize(messages)
    return TokenIds(ids), round((time.perf_counter() - start) * 1000, 4)
