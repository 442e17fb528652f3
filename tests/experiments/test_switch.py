from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.records import Record
from tests.experiments.support import measure, of, profile


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("on")
    return measure(profile(folder, length=False, switch={"system_tokens": 1488, "max_tokens": 4}), "on", folder / "out")


@pytest.fixture(scope="module")
def off(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("off")
    return measure(profile(folder, length=False, switch={"system_tokens": 300, "max_tokens": 4}), "off", folder / "out")


def test_the_first_question_is_cold_and_the_others_warm(on: list[Record]) -> None:
    probes = [p for p in of(on, "probe", experiment="switch") if p["phase"] != "warmup"]
    assert [p["phase"] for p in probes] == ["cold"] + ["warm"] * 7
    assert [p["condition"]["question"] for p in probes] == list(range(1, 9))
    assert probes[0]["cached_tokens"] == 0
    assert all(p["cached_tokens"] > 1400 for p in probes[1:])


def test_hit_rates_are_counted_with_and_without_the_first_request(on: list[Record]) -> None:
    (later,) = of(on, "counters", scope="requests 2-8")
    (everything,) = of(on, "counters", scope="all")
    assert later["hit_rate"] >= 0.95
    assert later["requests"] == 7
    assert 0.8 < everything["hit_rate"] < 7 / 8


def test_counters_replies_and_block_arithmetic_agree(on: list[Record]) -> None:
    for counters in of(on, "counters"):
        assert counters["reconciliation"]["agree"] is True
        assert counters["predicted_tokens"] == counters["hits"]


def test_a_sample_follows_every_request(on: list[Record]) -> None:
    samples = of(on, "sample", experiment="switch")
    assert [s["request"] for s in samples] == list(range(1, 9))
    assert samples[0]["hits"] == 0
    assert samples[-1]["hits"] == of(on, "counters", scope="all")[0]["hits"]


def test_local_arms_generate_all_the_tokens(on: list[Record]) -> None:
    assert {p["completion_tokens"] for p in of(on, "probe", phase="warm")} == {4}


def test_without_the_cache_every_request_is_cold(off: list[Record]) -> None:
    probes = [p for p in of(off, "probe") if p["phase"] != "warmup"]
    assert {p["phase"] for p in probes} == {"cold"}
    assert {p["cached_tokens"] for p in probes} == {0}
    assert {c["status"] for c in of(off, "counters")} == {"disabled"}


def test_every_repeat_starts_from_a_cold_prefix(tmp_path: Path) -> None:
    switch = {"system_tokens": 100, "max_tokens": 1, "repeats": 2}
    records = measure(profile(tmp_path, length=False, switch=switch), "on", tmp_path / "out")
    assert [p["cached_tokens"] for p in of(records, "probe", phase="cold")] == [0, 0]
    assert [c["repeat"] for c in of(records, "counters", scope="all")] == [0, 1]


def test_the_texts_of_the_user_are_asked(tmp_path: Path) -> None:
    switch = {
        "system_prompt": {"text": "Only say yes."},
        "system_tokens": None,
        "system_repeats": 30,
        "questions": {"text": "Is it?\nWas it?\nWill it?"},
        "max_tokens": 1,
    }
    records = measure(profile(tmp_path, length=False, switch=switch), "on", tmp_path / "out")
    assert len([p for p in of(records, "probe") if p["phase"] != "warmup"]) == 3
    assert of(records, "counters", scope="requests 2-3")


@pytest.mark.parametrize("arm", ["on", "off"])
def test_whole_answers_of_given_lengths_are_measured_apart(tmp_path: Path, arm: str) -> None:
    switch = {"system_tokens": 100, "max_tokens": 2, "outputs": [3, 6]}
    records = measure(profile(tmp_path, length=False, switch=switch), arm, tmp_path / "out")
    assert len([p for p in of(records, "probe", experiment="switch") if p["phase"] != "warmup"]) == 8
    answers = of(records, "probe", experiment="outputs", phase="warm" if arm == "on" else "cold")
    answers = [p for p in answers if p["condition"]["output_tokens"] > 1]
    assert sorted(p["completion_tokens"] for p in answers) == [3] * 5 + [6] * 5
    assert all((p["cached_tokens"] > 0) is (arm == "on") for p in answers)
