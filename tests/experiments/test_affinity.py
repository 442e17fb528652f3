"""Affinity: two engines that take turns, and a client that keeps each prefix to one of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from prefixkit.records import Record
from tests.experiments.support import measure, of, profile

AFFINITY = {"prefixes": 3, "prefix_tokens": 100, "requests": 4, "concurrency": [1, 2], "repeats": 2}
ENGINES = {"data_parallel_size": 2}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("affinity")
    path = profile(folder, engine_args=ENGINES, switch=False, length=False, affinity=AFFINITY)
    return measure(path, "on", folder / "out")


def sent(records: list[Record], **condition: object) -> list[Record]:
    found = of(records, "probe", experiment="affinity")
    return [p for p in found if p["phase"] != "warmup" and condition.items() <= p["condition"].items()]


def test_every_visit_asks_for_each_prefix_as_often_with_new_questions(on: list[Record]) -> None:
    cells = Counter(p["cell"] for p in sent(on))
    assert set(cells) == {f"affinity/{r}/{n}/r{i}" for r in ("balanced", "sticky") for n in (1, 2) for i in (0, 1)}
    assert set(cells.values()) == {12}
    for cell in cells:
        asked = [(p["condition"]["prefix"], p["condition"]["request"]) for p in sent(on) if p["cell"] == cell]
        assert sorted(asked) == [(prefix, request) for prefix in range(3) for request in (1, 2, 3, 4)]


def test_both_routings_of_a_round_ask_in_the_same_order(on: list[Record]) -> None:
    def order(routing: str, number: int) -> list[tuple[int, int]]:
        rows = [p["condition"] for p in sent(on, routing=routing, concurrency=1, round=number)]
        return [(c["prefix"], c["request"]) for c in sorted(rows, key=lambda c: c["position"])]

    assert order("balanced", 0) == order("sticky", 0)
    assert order("sticky", 0) != order("sticky", 1)


def test_a_sticky_client_misses_each_prefix_once(on: list[Record]) -> None:
    for probe in sent(on, routing="sticky", concurrency=1):
        condition = probe["condition"]
        assert condition["engine"] == condition["prefix"] % 2
        assert bool(probe["cached_tokens"]) is (condition["request"] > 1)
        assert probe["cached_tokens"] == condition["predicted_cached_tokens"]


def test_nothing_is_predicted_where_the_server_chooses_or_requests_race(on: list[Record]) -> None:
    unknown = [*sent(on, routing="balanced"), *sent(on, concurrency=2)]
    assert {p["condition"]["predicted_cached_tokens"] for p in unknown} == {None}
    assert {p["condition"]["engine"] for p in sent(on, routing="balanced")} == {None}


def test_each_visit_is_counted_engine_by_engine_and_agrees_with_the_replies(on: list[Record]) -> None:
    counters = [c for c in of(on, "counters", experiment="affinity") if c["scope"] != "all"]
    assert len(counters) == 8
    for record in counters:
        routing, users = record["scope"].split("/")
        probes = sent(on, routing=routing, concurrency=int(users), round=record["round"])
        assert record["hits"] == sum(p["cached_tokens"] for p in probes)
        assert record["queries"] == sum(p["prompt_tokens"] for p in probes)
        assert set(record["per_engine"]) == {"0", "1"}
        assert sum(e["queries"] for e in record["per_engine"].values()) == record["queries"]
        assert record["reconciliation"]["agree"] is True, record
    (sticky,) = [c for c in counters if c["scope"] == "sticky/1" and c["round"] == 0]
    assert sticky["predicted_tokens"] == sticky["hits"]


def test_requests_in_turn_find_less_than_a_sticky_client(on: list[Record]) -> None:
    found = {r: sum(p["cached_tokens"] for p in sent(on, routing=r, concurrency=1)) for r in ("balanced", "sticky")}
    assert found["balanced"] < found["sticky"]


def test_each_engine_is_warmed_up(on: list[Record]) -> None:
    assert len(of(on, "probe", experiment="affinity", phase="warmup")) == 2


def test_one_engine_is_a_reason_to_skip(tmp_path: Path) -> None:
    found = measure(profile(tmp_path, switch=False, length=False, affinity=AFFINITY), "on", tmp_path / "out")
    (skip,) = of(found, "skip", experiment="affinity")
    assert "one engine" in skip["reason"]
    assert not of(found, "probe", experiment="affinity")
