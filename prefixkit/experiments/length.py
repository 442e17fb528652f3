"""Experiment `length`: TTFT against prompt length, in rounds that visit every length in random order."""

from __future__ import annotations

import random

from prefixkit.experiments.session import Session
from prefixkit.params.models import Length
from prefixkit.prompts import chat, given_text
from prefixkit.stats import narrow_enough

NAME = "length"


def run(session: Session) -> None:
    """Make the rounds that are not measured yet; with `precision`, until the reduction's interval is narrow enough."""
    length = session.params.experiments.length
    assert length is not False
    question = given_text(length.question, session.prompts.texts.question)
    targets = _fitting(session, length, question)
    rounds = max(length.repeats, length.max_repeats) if length.precision else length.repeats
    pending = [r for r in range(rounds) if any(not session.is_finished(cell_name(t, r)) for t in targets)]
    if not pending or _precise(session, length, pending[0]):
        return
    now = pending if session.rounds is None else pending[: session.rounds]
    visits = sum(1 for r in now for t in targets if not session.is_finished(cell_name(t, r)))
    session.expect(NAME, visits * requests_of_a_visit(session))
    for target in targets:
        session.warm_up(NAME, target, max_tokens=length.max_tokens)
    done = 0
    with session.counted(NAME):
        for number in now:
            if _precise(session, length, number):
                session.progress(f"{NAME}: precise enough after {number} rounds")
                return
            _round(session, length, question, targets, number)
            done += 1
    if done < len(pending) and not _precise(session, length, pending[done]):
        session.leave_unfinished(f"{NAME}: {len(pending) - done} of {rounds} rounds are left")


def cell_name(target: int, number: int) -> str:
    """Return the unit of resumption: one length in one round."""
    return f"{NAME}/{target}/r{number}"


def requests_of_a_visit(session: Session) -> int:
    """Return how many requests one visit makes."""
    length = session.params.experiments.length
    if session.arm != "on" or not length:
        return 1
    return 3 if length.control else 2


def _round(session: Session, length: Length, question: str, targets: list[int], number: int) -> None:
    order = list(targets)
    random.Random(f"{length.seed}/{NAME}/{number}").shuffle(order)
    for position, target in enumerate(order):
        with session.cell(cell_name(target, number)) as todo:
            if todo:
                _visit(session, length, question, target, {"round": number, "position": position})


def _visit(session: Session, length: Length, question: str, target: int, condition: dict[str, int]) -> None:
    messages = chat(session.prompts.prefix(target, given_text(length.unit, session.prompts.texts.unit)), question)

    def send(phase: str, cache_salt: str | None = None) -> bool:
        probe = session.probe(
            messages,
            experiment=NAME,
            phase=phase,
            condition=dict(condition),
            target_tokens=target,
            max_tokens=length.max_tokens,
            temperature=length.temperature,
            cache_salt=cache_salt,
        )
        return probe.error is None

    # Without its cold request a warm one would not be warm.
    if send("cold") and session.arm == "on":
        send("warm")
        if length.control:
            send("control", session.fresh_salt())


def _fitting(session: Session, length: Length, question: str) -> list[int]:
    """Return the lengths that the server's context holds, recording those that it does not."""
    effective = session.server.effective if session.server else None
    limit = effective.max_model_len if effective else None
    targets = sorted({*length.short_lengths, *length.lengths})
    if limit is None:
        return targets
    room = limit - length.max_tokens - len(session.client.tokenize(chat("", question)))
    for target in targets:
        if target > room:
            session.skip(NAME, f"{target} tokens do not fit into the server's context of {limit}", target_tokens=target)
    return [target for target in targets if target <= room]


def _precise(session: Session, length: Length, rounds: int) -> bool:
    """Return whether so many rounds suffice; `repeats` rounds are always made."""
    if length.precision is None or rounds < length.repeats:
        return False
    return narrow_enough(session.records, length.precision)
