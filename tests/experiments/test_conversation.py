"""Conversations: real replies in the history, hits per turn, and what rewriting it loses."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments.conversation import Dialogue, generated
from prefixkit.records import Record
from tests.experiments.support import measure, of, profile

CONVERSATION = {"system_tokens": 100, "turns": 4, "max_tokens": 12, "repeats": 2}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("conversation")
    return measure(profile(folder, switch=False, length=False, conversation=CONVERSATION), "on", folder / "out")


def turns(records: list[Record], mode: str) -> list[Record]:
    found = [p for p in of(records, "probe", experiment="conversation") if p["phase"] != "warmup"]
    return [p for p in found if p["condition"]["mode"] == mode and p["condition"]["round"] == 1]


def held(mode: str) -> list[dict[str, str]]:
    dialogue = Dialogue(mode, "rules", "thinking")
    dialogue.answered("q1", "r1")
    dialogue.answered("q2", "r2")
    return dialogue.messages("q3")


def test_a_growing_history_holds_every_question_and_reply() -> None:
    assert [m["content"] for m in held("growing")] == ["rules", "q1", "r1", "q2", "r2", "q3"]


def test_a_fixed_history_holds_none() -> None:
    assert [m["content"] for m in held("fixed")] == ["rules", "q3"]


def test_a_rewritten_history_keeps_the_reasoning_of_the_newest_reply_only() -> None:
    contents = [m["content"] for m in held("rewritten")]
    assert contents[2] == "r1"
    assert contents[4] == "<think>\nthinking\n</think>\n\nr2"


def test_a_reply_is_read_back_from_the_prompt_that_holds_it() -> None:
    assert generated([1, 2], [1, 2, 7, 8, 9], 2) == [7, 8]
    assert generated([1, 2], [1, 3, 7, 8, 9], 2) is None


@pytest.mark.parametrize("mode", ["growing", "fixed", "rewritten"])
def test_the_first_turn_is_cold_and_later_ones_hit_what_arithmetic_says(on: list[Record], mode: str) -> None:
    found = turns(on, mode)
    assert [p["condition"]["turn"] for p in found] == [1, 2, 3, 4]
    assert [p["phase"] for p in found] == ["cold", "warm", "warm", "warm"]
    for probe in found:
        assert abs(probe["cached_tokens"] - probe["condition"]["predicted_cached_tokens"]) <= 16
    assert found[0]["cached_tokens"] == 0
    assert all(p["cached_tokens"] >= 96 for p in found[1:])


def test_only_a_growing_history_hits_more_each_turn(on: list[Record]) -> None:
    hits = {mode: [p["cached_tokens"] for p in turns(on, mode)] for mode in ("growing", "fixed", "rewritten")}
    assert hits["growing"][3] > hits["growing"][1]
    assert hits["fixed"][3] == hits["fixed"][1]
    last = turns(on, "rewritten")[3]
    assert last["prompt_tokens"] - last["cached_tokens"] > 50


def test_a_failed_turn_ends_the_conversation_and_no_other(tmp_path: Path) -> None:
    params = {**CONVERSATION, "max_tokens": 9000, "modes": ["growing", "fixed"], "repeats": 1}
    records = measure(profile(tmp_path, switch=False, length=False, conversation=params), "on", tmp_path / "out")
    assert all(p["error"] for p in turns(records, "growing"))
    assert len(turns(records, "growing")) == len(turns(records, "fixed")) == 1
