"""Block sizes by capacities: hits, tail tokens and the recommended setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.records import Record
from prefixkit.stats.block_sizes import Setting, recommend, settings
from tests.experiments.support import measure, of, profile

BLOCKS = {"block_sizes": [16, 64], "capacities": [1024], "prefixes": 2, "prefix_tokens": 150, "repeats": 2}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("blocks")
    return measure(profile(folder, switch=False, length=False, blocks=BLOCKS), "on", folder / "out")


def setting(block: int, capacity: int, ttft_ms: float) -> Setting:
    return Setting(block, capacity, 0.9, 0.9, 10.0, ttft_ms)


def test_each_pair_has_a_server_of_its_own(on: list[Record]) -> None:
    own = of(on, "run", experiment="blocks")
    assert [(r["block_size"], r["kv_capacity_tokens"]) for r in own] == [(16, 1024), (64, 1024)]


def test_hits_and_tail_tokens_are_those_of_block_arithmetic(on: list[Record]) -> None:
    probes = [p for p in of(on, "probe", experiment="blocks") if p["phase"] != "warmup"]
    assert len(probes) == 2 * 2 * 3
    for probe in probes:
        condition = probe["condition"]
        assert probe["cached_tokens"] == condition["predicted_cached_tokens"]
        if probe["phase"] == "warm":
            assert probe["cached_tokens"] == condition["shared_tokens"] - condition["tail_tokens"]
            assert condition["tail_tokens"] < condition["block_size"]


def test_a_smaller_block_loses_fewer_tail_tokens(on: list[Record]) -> None:
    small, large = settings(on)
    assert (small.block_size, large.block_size) == (16, 64)
    assert small.hit_rate == pytest.approx(small.predicted_rate)
    assert small.hit_rate > large.hit_rate


def test_the_fastest_setting_is_recommended(on: list[Record]) -> None:
    assert recommend(settings(on)) in settings(on)
    assert recommend([setting(16, 4096, 80), setting(128, 4096, 100)]) == setting(16, 4096, 80)


def test_among_equals_the_least_memory_then_the_larger_block_is_recommended() -> None:
    assert recommend([setting(16, 4096, 100), setting(128, 4096, 102), setting(128, 8192, 99)]) == setting(
        128, 4096, 102
    )
    assert recommend([]) is None


def test_a_server_that_does_not_start_is_a_skip_and_the_rest_is_measured(tmp_path: Path) -> None:
    path = profile(
        tmp_path, switch=False, length=False, blocks={**BLOCKS, "block_sizes": [16], "capacities": [16, 1024]}
    )
    records = measure(path, "on", tmp_path / "out")
    assert {p["condition"]["capacity"] for p in of(records, "probe", experiment="blocks") if p["condition"]} == {1024}
