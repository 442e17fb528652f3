"""Load: ladders and arrivals on a server that behaves; nothing here depends on how fast it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments.load import questions
from prefixkit.records import Record
from prefixkit.stats.load_steps import steps
from tests.experiments.support import measure, of, profile

LOAD = {
    "concurrency": [1, 3],
    "rates_per_s": [50.0],
    "requests": 6,
    "prefixes": 2,
    "prefix_tokens": 100,
    "max_tokens": 3,
}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("load")
    arguments = {"enable_per_request_metrics": True}
    path = profile(folder, engine_args=arguments, switch=False, length=False, load=LOAD)
    return measure(path, "on", folder / "out")


def sent(records: list[Record], **condition: object) -> list[Record]:
    found = of(records, "probe", experiment="load", phase="load")
    return [p for p in found if condition.items() <= p["condition"].items()]


def made(started: list[float], e2e_ms: float, rate: float | None = 10.0) -> list[Record]:
    return [
        {
            "record": "probe",
            "experiment": "load",
            "phase": "load",
            "cell": "load/rate/10",
            "error": None,
            "e2e_ms": e2e_ms,
            "completion_tokens": 4,
            "condition": {"rate_per_s": rate, "intended_s": i / 10, "started_s": at},
        }
        for i, at in enumerate(started)
    ]


def test_no_prefix_gets_the_same_question_twice() -> None:
    asked = questions(("a", "b", "c"), 2, 14)
    for prefix in (0, 1):
        assert len(set(asked[prefix::2])) == 7


def test_each_step_is_a_cell_with_prefixes_of_its_own(on: list[Record]) -> None:
    assert {p["cell"] for p in sent(on)} == {"load/users/1", "load/users/3", "load/rate/50"}
    assert all(len(sent(on, step="users", concurrency=n)) == 6 for n in (1, 3))
    for cell in {p["cell"] for p in sent(on)}:
        first = min((p for p in sent(on) if p["cell"] == cell), key=lambda p: p["condition"]["request"])
        assert first["cached_tokens"] == 0
        assert first["condition"]["first_arrival"] is True


def test_one_user_alone_never_races_after_each_prefix_was_seen(on: list[Record]) -> None:
    probes = sent(on, concurrency=1)
    assert [p["condition"]["first_arrival"] for p in probes] == [True, True, False, False, False, False]
    for probe in probes:
        assert probe["cached_tokens"] == probe["condition"]["predicted_cached_tokens"]


def test_a_poisson_step_keeps_intended_and_real_starts(on: list[Record]) -> None:
    for probe in sent(on, rate_per_s=50.0):
        condition = probe["condition"]
        assert condition["started_s"] >= condition["intended_s"]
        assert condition["intended_at"].endswith("Z")
        assert probe["server"]["queue_ms"] is not None


def test_each_step_and_the_whole_are_counted(on: list[Record]) -> None:
    counters = of(on, "counters", experiment="load")
    assert {c["scope"] for c in counters} == {"users/1", "users/3", "rate/50", "all"}


def test_both_arms_send_as_many_requests(tmp_path: Path, on: list[Record]) -> None:
    off = measure(profile(tmp_path, switch=False, length=False, load=LOAD), "off", tmp_path / "out")
    assert len(sent(off)) == len(sent(on)) == 18
    assert {p["condition"]["predicted_cached_tokens"] for p in sent(off)} == {0}


def test_a_step_sums_up_offered_and_achieved_rates() -> None:
    (kept,) = steps(made([0.0, 0.1, 0.2, 0.3, 0.4], e2e_ms=600.0))
    assert (kept.name, kept.requests, kept.failed, kept.offered_per_s) == ("rate/10", 5, 0, 10.0)
    assert kept.started_per_s == pytest.approx(10)
    assert kept.finished_per_s == pytest.approx(5)
    assert kept.output_tokens_per_s == pytest.approx(20)
    assert kept.behind is None


def test_a_client_that_falls_behind_says_so() -> None:
    (late,) = steps(made([0.0, 0.1, 0.3, 0.6, 0.9], e2e_ms=100.0))
    assert late.behind is not None
    assert "3 of 5 requests" in late.behind
    assert late.started_per_s == pytest.approx(4 / 0.9)
