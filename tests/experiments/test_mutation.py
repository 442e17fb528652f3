"""A changed token: where it lands, and that hits are what block arithmetic says."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments.mutation import Changer, Target, borders, fractions
from prefixkit.prompts import chat
from prefixkit.records import Record
from tests.experiments.support import measure, of, profile
from tests.fakes.kv import Tokenizer

MUTATION = {"prompt_tokens": 200, "repeats": 2}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("mutation")
    return measure(profile(folder, switch=False, length=False, mutation=MUTATION), "on", folder / "out")


def sent(records: list[Record], **condition: object) -> list[Record]:
    found = [p for p in of(records, "probe", experiment="mutation") if p["phase"] != "warmup"]
    return [p for p in found if condition.items() <= p["condition"].items()]


def changer() -> Changer:
    return Changer(chat("one two six ten red tin sun " * 20, "Why so?"), Tokenizer().encode_chat, ("kettle", "ladder"))


@pytest.mark.parametrize("tokens", [3, 17, 64, 65, 100, 141])
def test_the_first_differing_token_is_the_wanted_one(tokens: int) -> None:
    found = changer().change(Target(tokens, 0.5))
    assert found.tokens == tokens
    assert found.messages != chat("one two six ten red tin sun " * 20, "Why so?")


def test_a_place_outside_the_words_is_answered_by_the_nearest_word() -> None:
    one = changer()
    assert one.change(Target(0, 0.0)).tokens == 3
    assert one.change(Target(len(one.ids) - 1, 1.0)).tokens < len(one.ids) - 1


def test_two_changes_at_one_place_differ() -> None:
    one = changer()
    first, second = one.change(Target(64, 0.5)), one.change(Target(64, 0.5, "at"))
    assert first.tokens == second.tokens == 64
    assert first.messages != second.messages


def test_fractions_stay_within_the_prompt() -> None:
    assert [t.tokens for t in fractions(200, [0.0, 0.25, 1.0])] == [0, 50, 199]


def test_borders_are_before_at_and_after_the_first_token_of_a_block() -> None:
    before, at, after = borders(changer(), 16)
    assert at.tokens % 16 == 0
    assert (before.tokens, after.tokens) == (at.tokens - 1, at.tokens + 1)
    assert [v.target.border for v in (before, at, after)] == ["before", "at", "after"]


def test_a_prompt_within_one_block_has_no_border() -> None:
    assert borders(changer(), 4096) == []


def test_hits_equal_block_arithmetic_at_every_position(on: list[Record]) -> None:
    probes = sent(on)
    assert len(probes) == 2 * (2 + 5 + 3)
    for probe in probes:
        assert probe["cached_tokens"] == probe["condition"]["predicted_cached_tokens"]
    for probe in sent(on, variant="changed"):
        place = probe["condition"]["position_tokens"]
        assert probe["cached_tokens"] == min(place, probe["prompt_tokens"] - 1) // 16 * 16


def test_a_change_at_the_head_loses_everything_and_at_the_tail_almost_nothing(on: list[Record]) -> None:
    for head, tail, same in zip(
        sent(on, position=0.0), sent(on, position=1.0), sent(on, variant="unchanged")[1::2], strict=True
    ):
        assert head["cached_tokens"] == 0
        assert 0 < same["cached_tokens"] - tail["cached_tokens"] <= 16 or tail["cached_tokens"] == same["cached_tokens"]


def test_the_last_token_of_a_block_costs_the_block_and_the_next_one_does_not(on: list[Record]) -> None:
    for before, at in zip(sent(on, border="before"), sent(on, border="at"), strict=True):
        assert at["cached_tokens"] - before["cached_tokens"] == 16


def test_the_three_hit_counts_agree(on: list[Record]) -> None:
    (counters,) = of(on, "counters", experiment="mutation")
    assert counters["predicted_tokens"] == counters["hits"] == sum(p["cached_tokens"] for p in sent(on))
    assert counters["reconciliation"]["agree"] is True


def test_arm_off_is_cold_throughout_and_predicts_nothing(tmp_path: Path) -> None:
    records = measure(profile(tmp_path, switch=False, length=False, mutation=MUTATION), "off", tmp_path / "out")
    assert {p["phase"] for p in sent(records)} == {"cold"}
    assert {p["condition"]["predicted_cached_tokens"] for p in sent(records)} == {0}


def test_chinese_prompts_are_changed_by_the_character(tmp_path: Path) -> None:
    path = profile(tmp_path, language="zh", switch=False, length=False, mutation={**MUTATION, "repeats": 1})
    probes = sent(measure(path, "on", tmp_path / "out"), variant="changed")
    assert len(probes) == 8
    for probe in probes:
        assert probe["cached_tokens"] == probe["condition"]["predicted_cached_tokens"]
        assert probe["cached_tokens"] <= probe["condition"]["position_tokens"]
