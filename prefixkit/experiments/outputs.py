"""Whole answers of given lengths behind the shared system prompt: what of the saving a long answer leaves.

Part of `switch`, recorded as experiment `outputs` so that its answers do not mix with those of the eight questions.
"""

from __future__ import annotations

import random

from prefixkit.experiments.session import Session
from prefixkit.params.models import Switch
from prefixkit.prompts import chat

NAME = "outputs"
ANSWERS = 5


def cell_name(repeat: int) -> str:
    """Return the unit of resumption: one system prompt with all its answers."""
    return f"{NAME}/r{repeat}"


def run(session: Session, switch: Switch, system: str, questions: tuple[str, ...], repeat: int) -> None:
    """Ask for `ANSWERS` answers of each length in random order; on arm on, one cold request comes first."""
    requests = [(tokens, number) for tokens in switch.outputs for number in range(ANSWERS)]
    random.Random(f"{switch.seed}/{NAME}/{repeat}").shuffle(requests)
    on = session.arm == "on"
    session.expect(NAME, len(requests) + on)
    if on:
        session.probe(
            chat(system, questions[0]),
            experiment=NAME,
            phase="cold",
            condition={"output_tokens": 1, "repeat": repeat},
            target_tokens=switch.system_tokens,
        )
    for tokens, number in requests:
        session.probe(
            chat(system, questions[(number + 1) % len(questions)]),
            experiment=NAME,
            phase="warm" if on else "cold",
            condition={"output_tokens": tokens, "question": number + 1, "repeat": repeat},
            target_tokens=switch.system_tokens,
            max_tokens=tokens,
            temperature=switch.temperature,
            ignore_eos=True,
        )
