"""Prompts of one's own: where they differ, in front of what, and whether a block explains it first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixkit.doctor.prompts import prompt_checks, read_prompts
from prefixkit.errors import ParamsError

RULES = "Answer briefly. Quote the manual. Never invent part numbers. " * 40


def prompt(head: str, question: str = "Which oil?") -> list[dict[str, str]]:
    return [{"role": "system", "content": head + RULES}, {"role": "user", "content": question}]


def words(messages: object) -> list[int]:
    text = " ".join(m["content"] for m in messages)  # type: ignore[attr-defined]
    return [hash(w) for w in text.split()]


def test_a_clock_in_front_of_the_rules_is_named_with_its_place_and_cost() -> None:
    prompts = [
        prompt("You are a desk clerk, the time is 08:30:01. "),
        prompt("You are a desk clerk, the time is 08:30:02. "),
    ]
    [check] = prompt_checks(prompts, words, 16, None)
    assert (check.name, check.status) == ("prompts", "failed")
    assert "a clock ('08:30:01' against '08:30:02')" in check.found
    assert "token 8 of" in check.found
    assert "character 41 of message 1 (system)" in check.found
    assert "end of the prompt" in check.remedy


def test_a_block_longer_than_the_prompt_is_blamed_before_the_clock() -> None:
    prompts = [prompt("The time is 08:30:01. "), prompt("The time is 08:30:02. ")]
    size = len(words(prompts[0]))
    checks = prompt_checks(prompts, words, size + 100, None)
    assert [c.name for c in checks if c.status == "failed"] == ["block-size"]
    assert checks[0].weight > 64


def test_different_questions_behind_shared_rules_are_fine() -> None:
    [check] = prompt_checks([prompt(""), prompt("", "How many bolts?")], words, 16, None)
    assert check.status == "ok"


def test_a_history_that_is_rewritten_is_named() -> None:
    first = [*prompt(""), {"role": "assistant", "content": "5W-30"}, {"role": "user", "content": "Why?"}]
    second = [
        *prompt(""),
        {"role": "assistant", "content": "<think></think>5W-30"},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "It says so."},
        {"role": "user", "content": "Where?"},
    ]
    check = prompt_checks([first, second], None, 16, None)[0]
    assert check.status == "failed"
    assert "previous assistant turn is rendered differently" in check.found


def test_a_date_alone_is_stable_today() -> None:
    checks = prompt_checks([prompt("Today is 2026-03-04. ")] * 2, None, 16, None)
    assert [c.status for c in checks] == ["ok", "info"]
    assert "stable today" in checks[1].found


def test_prompts_that_cannot_all_stay_in_the_cache_are_told() -> None:
    prompts = [[{"role": "user", "content": f"{n} " * 4000}] for n in range(8)]
    checks = prompt_checks(prompts, None, 16, 5000)
    assert any(c.name == "kv-capacity" and c.status == "failed" for c in checks)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('{"messages": [{"role": "user", "content": "a"}]}\n{"messages": [{"role": "user", "content": "b"}]}\n', 2),
        (json.dumps([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]), 1),
        (json.dumps([[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]]), 2),
        (json.dumps([{"messages": [{"role": "user", "content": "a"}]}] * 3), 3),
        (json.dumps({"messages": [{"role": "user", "content": "a"}]}), 1),
        (json.dumps(["one text", "another text"]), 2),
        ('{"custom_id": "1", "body": {"messages": [{"role": "user", "content": "a"}]}}\n', 1),
        ('\ufeff[{"role": "user", "content": "\u00e9"}]\n\n[{"role": "user", "content": "\u4e2d"}]\n', 2),
    ],
)
def test_every_common_form_of_a_prompt_file_is_read(text: str, count: int, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(text, "utf-8")
    prompts = read_prompts(file)
    assert len(prompts) == count
    assert all(m["role"] for p in prompts for m in p)


@pytest.mark.parametrize("text", ["", "{", '{"messages": []}', "[]", "3", '{"messages": [1]}', "a\nb"])
def test_a_file_without_prompts_is_bad_input(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(text, "utf-8")
    with pytest.raises(ParamsError) as caught:
        read_prompts(file)
    assert caught.value.exit_code == 2


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="cannot be read"):
        read_prompts(tmp_path / "none")
