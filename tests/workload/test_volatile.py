"""Volatile text: found by how often it stands in a workload, and moved behind the last user message."""

from __future__ import annotations

import pytest

from prefixkit.chat_text import first_difference
from prefixkit.workload.volatile import Messages, SegmentCounts, segments

RULES = "Feed the cats at nine.\nNever open the gate. Call before noon."


def shop(head: str, *turns: str) -> Messages:
    roles = ("user", "assistant")
    return [{"role": "system", "content": head}] + [
        {"role": roles[i % 2], "content": text} for i, text in enumerate(turns)
    ]


def counts_of(requests: list[Messages]) -> SegmentCounts:
    counts = SegmentCounts()
    for messages in requests:
        counts.add(messages)
    return counts


@pytest.mark.parametrize("text", ["", "One. Two!\n\nThree? v1.2 is out", "先写。再读。", " \n lead"])
def test_segments_join_to_the_text(text: str) -> None:
    assert "".join(segments(text)) == text


def test_a_clock_at_the_head_is_volatile_and_moves_behind_the_last_question() -> None:
    requests = [shop(f"It is 09:0{i}.\n{RULES}", "hello", "hi", f"question {i}") for i in range(6)]
    counts = counts_of(requests)
    stable, volatile = counts.split(requests[3])
    assert stable == RULES
    assert volatile.strip() == "It is 09:03."
    moved = counts.moved(requests[3])
    assert moved[0]["content"] == RULES
    assert moved[-1]["content"] == "question 3\n\nIt is 09:03."
    assert requests[3][0]["content"].startswith("It is 09:03.")


def test_stable_prompts_are_left_alone() -> None:
    requests = [shop(RULES, f"question {i}") for i in range(4)]
    counts = counts_of(requests)
    assert counts.moved(requests[0]) is requests[0]


def test_volatile_text_at_the_end_of_the_first_message_needs_no_move() -> None:
    requests = [shop(f"{RULES} The guest is number {i}.", "hi") for i in range(4)]
    counts = counts_of(requests)
    assert counts.moved(requests[0]) is requests[0]


def test_requests_of_one_template_share_a_family() -> None:
    cats = [shop(f"It is 09:0{i}. {RULES}", "hi") for i in range(3)]
    dogs = [shop(f"It is 09:0{i}. Walk the dogs at noon, twice. Keep them on the lead.", "hi") for i in range(3)]
    counts = counts_of(cats + dogs)
    assert len({counts.family(m) for m in cats}) == 1
    assert counts.family(cats[0]) != counts.family(dogs[0])


def test_the_first_difference_is_given_by_message_and_character() -> None:
    a, b = shop("same head", "the cat sat"), shop("same head", "the cow sat")
    assert first_difference(a, b) == (1, 5)
    assert first_difference(a, a) is None
    assert first_difference(a, [*a, {"role": "assistant", "content": "yes"}]) is None
    assert first_difference(a, shop("same head", "the cat")) == (1, 7)
