from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.records import Record
from tests.experiments.support import measure, of, profile, start


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("on")
    return measure(profile(folder, switch=False), "on", folder / "out")


def measured(records: list[Record]) -> list[Record]:
    return [p for p in of(records, "probe", experiment="length") if p["phase"] != "warmup"]


def test_a_visit_is_cold_then_warm_then_a_salted_control(on: list[Record]) -> None:
    for cell in {p["cell"] for p in measured(on)}:
        visit = [p for p in measured(on) if p["cell"] == cell]
        assert [p["phase"] for p in visit] == ["cold", "warm", "control"]
        assert (visit[0]["cached_tokens"], visit[2]["cached_tokens"]) == (0, 0)
        assert visit[1]["cached_tokens"] == (visit[1]["prompt_tokens"] - 1) // 16 * 16
        assert len({p["prompt_tokens"] for p in visit}) == 1


def test_every_round_visits_every_length_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    lengths = [40, 48, 56, 64, 72, 80, 88, 96]
    length = {"lengths": lengths, "short_lengths": [], "repeats": 3}
    records = measure(profile(tmp_path, switch=False, length=length, warmup_requests=0), "off", tmp_path / "out")
    orders = [[p["target_tokens"] for p in measured(records) if p["condition"]["round"] == r] for r in range(3)]
    assert [sorted(order) for order in orders] == [lengths] * 3
    assert len({tuple(order) for order in orders}) == 3
    assert [p["condition"]["position"] for p in measured(records)[:8]] == list(range(8))


def test_prompts_of_one_length_have_the_same_number_of_tokens(on: list[Record]) -> None:
    for target in (32, 96, 192):
        sizes = {p["prompt_tokens"] for p in of(on, "probe", target_tokens=target, phase="cold")}
        assert len(sizes) == 1


def test_warm_up_requests_come_first_and_carry_other_text(on: list[Record]) -> None:
    probes = of(on, "probe", experiment="length")
    assert [p["phase"] for p in probes[:3]] == ["warmup"] * 3
    assert all(p["phase"] != "warmup" for p in probes[3:])


def test_the_three_rates_agree(on: list[Record]) -> None:
    (counters,) = of(on, "counters", experiment="length")
    assert counters["reconciliation"]["agree"] is True
    assert counters["predicted_tokens"] == counters["hits"]


def test_arm_off_sends_each_text_once(tmp_path: Path) -> None:
    records = measure(profile(tmp_path, switch=False), "off", tmp_path / "out")
    assert {p["phase"] for p in measured(records)} == {"cold"}
    assert len(measured(records)) == 3 * 2


def test_the_control_can_be_left_out(tmp_path: Path) -> None:
    length = {"lengths": [64], "short_lengths": [], "repeats": 1, "control": False}
    records = measure(profile(tmp_path, switch=False, length=length), "on", tmp_path / "out")
    assert [p["phase"] for p in measured(records)] == ["cold", "warm"]


def test_a_length_beyond_the_servers_context_is_skipped_with_its_reason(tmp_path: Path) -> None:
    length = {"lengths": [64, 9000], "short_lengths": [], "repeats": 1}
    records = measure(profile(tmp_path, switch=False, length=length), "off", tmp_path / "out")
    (skip,) = of(records, "skip", experiment="length")
    assert "9000 tokens do not fit" in skip["reason"]
    assert {p["target_tokens"] for p in measured(records)} == {64}


def test_rounds_can_be_made_one_at_a_time(tmp_path: Path) -> None:
    path = profile(tmp_path, switch=False)
    first = measure(path, "off", tmp_path / "out", rounds=1)
    assert (len(measured(first)), first[-1]["status"]) == (3, "paused")
    second = measure(path, "off", tmp_path / "out", rounds=1)
    assert (len(measured(second)), second[-1]["status"]) == (6, "ok")


def test_progress_says_how_many_probes_are_done_of_all(tmp_path: Path) -> None:
    said: list[str] = []
    session = start(profile(tmp_path, switch=False), "off", tmp_path / "out")
    session.progress = said.append
    session.run("length")
    session.close()
    assert "length 1/6 probes" in said
    assert "length 6/6 probes" in said


def test_rounds_stop_when_the_reduction_is_precise_enough(tmp_path: Path) -> None:
    speed = {"fake_alpha_ms": 1.0, "fake_beta_ms": 0.05}
    length = {"lengths": [400], "short_lengths": [], "repeats": 3, "precision": 0.9, "max_repeats": 13}
    records = measure(profile(tmp_path, engine_args=speed, switch=False, length=length), "on", tmp_path / "out")
    assert {p["condition"]["round"] for p in measured(records)} == set(range(10))
    assert records[-1]["status"] == "ok"
    assert of(records, "counters", experiment="length")


def test_a_precision_out_of_reach_stops_at_the_cap(tmp_path: Path) -> None:
    length = {"lengths": [64], "short_lengths": [], "repeats": 1, "precision": 1e-9, "max_repeats": 4}
    records = measure(profile(tmp_path, switch=False, length=length), "on", tmp_path / "out")
    assert {p["condition"]["round"] for p in measured(records)} == {0, 1, 2, 3}
    assert records[-1]["status"] == "ok"
