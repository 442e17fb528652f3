"""Measured hits against block arithmetic on real vLLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from prefixkit.experiments import eviction, open_session
from prefixkit.experiments.session import Session
from prefixkit.params import load_arm
from prefixkit.records import Record, read_records
from prefixkit.server import Server
from tests.conftest import real_params
from tests.experiments.support import of

pytestmark = pytest.mark.real
OFF = {"switch": False, "length": False, "warmup_requests": 0}


def sent(records: list[Record], experiment: str) -> list[Record]:
    return [p for p in of(records, "probe", experiment=experiment) if p["phase"] != "warmup"]


def hits(probes: list[Record]) -> list[tuple[Any, Any]]:
    return [(p["cached_tokens"], p["condition"]["predicted_cached_tokens"]) for p in probes]


@pytest.fixture(scope="module")
def records(real_on: Server, tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("hits")
    profile = folder / "attached.yaml"
    content = {
        "model": {"name": real_on.model},
        "server": {"launcher": "url", "url": real_on.url},
        "experiments": {
            **OFF,
            "conversation": {"system_tokens": 300, "turns": 4, "max_tokens": 20},
            "mutation": {"prompt_tokens": 400, "repeats": 1},
            "load": {"concurrency": [3], "rates_per_s": [], "requests": 6, "prefix_tokens": 300, "max_tokens": 4},
            "workload": {"path": "prefixkit/data/workload_sample.jsonl", "limit": 12},
        },
    }
    profile.write_text(yaml.safe_dump(content), "utf-8")
    with open_session(profile, "on", folder / "out", progress=lambda _: None) as session:
        session.run_all()
    return read_records(folder / "out" / "on.jsonl")


def test_conversation_hits_are_exact(records: list[Record]) -> None:
    probes = [p for p in sent(records, "conversation") if p["condition"]["reply_as_generated"]]
    assert len(probes) > 8
    assert [a for a, _ in hits(probes)] == [b for _, b in hits(probes)]


def test_mutation_hits_are_exact_at_every_place(records: list[Record]) -> None:
    probes = sent(records, "mutation")
    assert len(probes) == 10
    assert [a for a, _ in hits(probes)] == [b for _, b in hits(probes)]
    assert {p["condition"]["border"] for p in probes} == {None, "before", "at", "after"}


def test_workload_hits_are_exact(records: list[Record]) -> None:
    probes = sent(records, "workload")
    assert len(probes) == 12
    assert [a for a, _ in hits(probes)] == [b for _, b in hits(probes)]


def test_load_hits_are_within_two_percent_once_a_prefix_is_ready(records: list[Record]) -> None:
    probes = [p for p in sent(records, "load") if not p["condition"]["first_arrival"]]
    measured, predicted = (sum(column) for column in zip(*hits(probes), strict=True))
    assert measured == pytest.approx(predicted, abs=0.02 * sum(p["prompt_tokens"] for p in probes))


def test_the_three_counts_agree_for_each_experiment(records: list[Record]) -> None:
    for name in ("conversation", "mutation", "workload"):
        (counters,) = of(records, "counters", experiment=name, scope="all")
        assert counters["reconciliation"]["agree"] is True, counters["reconciliation"]


def test_eviction_hits_are_those_of_a_pool_of_that_size(tmp_path: Path) -> None:
    profile = tmp_path / "small.yaml"
    params = real_params("on").model_dump(mode="json", include={"model", "server"})
    sizes = {"num_gpu_blocks": 48, "ratios": [0.6, 1.4], "prefix_tokens": 160, "passes": 1, "orders": ["cyclic"]}
    profile.write_text(yaml.safe_dump({**params, "experiments": {**OFF, "eviction": sizes}}), "utf-8")
    # Without the arm's own server, which this experiment would only stop.
    session = Session(load_arm(profile, "on"), "on", tmp_path / "on.jsonl", profile="small", progress=lambda _: None)
    eviction.run(session)
    records = read_records(tmp_path / "on.jsonl")
    (run,) = of(records, "run")
    assert run["kv_capacity_tokens"] == 48 * 32
    for ratio in (0.6, 1.4):
        probes = [p for p in sent(records, "eviction") if p["condition"]["ratio"] == ratio]
        measured, predicted = (sum(column) for column in zip(*hits(probes), strict=True))
        assert measured == pytest.approx(predicted, abs=0.02 * sum(p["prompt_tokens"] for p in probes))
