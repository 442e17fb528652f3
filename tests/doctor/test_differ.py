"""Where two prompts first differ, and what stands there."""

from __future__ import annotations

import pytest

from prefixkit.chat_text import kind_at
from prefixkit.doctor.differ import compare

RULES = "Answer briefly. Quote the manual. Never invent part numbers. " * 30


def system(text: str, question: str = "Which oil?") -> list[dict[str, str]]:
    return [{"role": "system", "content": text}, {"role": "user", "content": question}]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("Time: 09:14:21.", "Time: 09:14:22.", "a clock"),
        ("It is 9:05 pm.", "It is 9:06 pm.", "a clock"),
        ("Now 2026-03-04T09:14:21.123456.", "Now 2026-03-04T09:14:21.456789.", "a date with a clock"),
        ("Today is 2026-03-04.", "Today is 2026-03-05.", "a date"),
        ("Today is March 4, 2026.", "Today is March 5, 2026.", "a date"),
        ("Today: Wednesday.", "Today: Thursday.", "a date"),
        ("今天是2026年3月4日。", "今天是2026年3月5日。", "a date"),
        ("Request 7b0c2c1e-93a4-4a1e-8a53-2f3d5c6b7a88.", "Request 0e0f7d52-1c11-4f7c-9b7e-6f2b1a0c9d33.", "a UUID"),
        ("Session ab12cd34ef56.", "Session ab12cd34ff99.", "an id"),
        ("Stamp 1772612345.", "Stamp 1772612399.", "a Unix time"),
        ("User name: Alice Liddell.", "User name: Bob Cratchit.", "a user name"),
        ("Hello Alice, welcome.", "Hello Robert, welcome.", "a user name"),
        ("用户：王芳。", "用户：李强。", "a user name"),
        ("Write to ann@example.org.", "Write to bob@example.org.", "an e-mail address"),
        ("Shelf 7 is full.", "Shelf 9 is full.", "a number"),
        ("The sky is blue.", "The sky is grey.", "text"),
    ],
)
def test_what_stands_at_the_difference_is_named(before: str, after: str, kind: str) -> None:
    found = compare(system(f"You help. {before} {RULES}"), system(f"You help. {after} {RULES}"))
    assert found is not None
    assert found.kind == kind
    assert found.before != found.after
    assert found.lost_chars >= len(RULES)


def test_place_is_told_in_characters_and_tokens() -> None:
    head = "You are the desk of a repair shop. Time: 09:14:2"
    a, b = system(head + "1. " + RULES), system(head + "2. " + RULES)

    def tokenize(messages: object) -> list[int]:
        return [ord(c) for m in messages for c in m["content"]]  # type: ignore[attr-defined]

    found = compare(a, b, tokenize)
    assert found is not None
    assert (found.message, found.char, found.char_total) == (0, len(head), len(head))
    assert found.token == len(head)
    assert found.tokens == len(head) + 3 + len(RULES) + len("Which oil?")
    assert found.lost_tokens == 2 + len(RULES) + len("Which oil?")


def test_another_question_costs_nothing() -> None:
    found = compare(system(RULES, "Which oil?"), system(RULES, "How many bolts hold it?"))
    assert found is not None
    assert found.message == 1
    assert found.lost_chars < 4
    assert not found.rewritten


def test_a_repeated_or_continued_prompt_does_not_differ() -> None:
    a = system(RULES)
    assert compare(a, a) is None
    assert compare(a, [*a, {"role": "assistant", "content": "5W-30"}, {"role": "user", "content": "Why?"}]) is None


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ("5W-30 fits.", "<think></think>5W-30 fits.", "a thinking block"),
        ("<think>hm</think>5W-30 fits.", "5W-30 fits.", "a thinking block"),
        ("5W-30 fits.", "5W-30  fits.", "text"),
    ],
)
def test_a_rewritten_answer_is_history_written_anew(was: str, now: str, kind: str) -> None:
    first = [*system(RULES), {"role": "assistant", "content": was}, {"role": "user", "content": "Why?"}]
    second = [
        *system(RULES),
        {"role": "assistant", "content": now},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because."},
        {"role": "user", "content": "Sure?"},
    ]
    found = compare(first, second)
    assert found is not None
    assert found.rewritten
    assert found.kind == kind


def test_equal_text_with_different_tokens_is_the_templates_doing() -> None:
    first = system(RULES)
    second = [*first, {"role": "assistant", "content": "5W-30"}, {"role": "user", "content": "Why?"}]

    def tokenize(messages: object) -> list[int]:
        ids = [ord(c) for m in messages for c in m["content"]]  # type: ignore[attr-defined]
        return [*ids, 7, 7, 8] if len(ids) <= len(RULES) + 10 else ids

    found = compare(first, second, tokenize)
    assert found is not None
    assert found.rewritten
    assert found.kind == "the chat template"


def test_a_place_outside_any_pattern_is_plain_text() -> None:
    assert kind_at("nothing here but words", 3)[0] == "text"
    assert kind_at("", 0)[0] == "text"


def test_content_in_parts_is_compared_by_its_text() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]}]
    assert compare(parts, [{"role": "user", "content": "one two"}]) is None
