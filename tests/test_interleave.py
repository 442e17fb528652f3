from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from prefixkit import interleave as module
from prefixkit.experiments import arm_state, open_session, opening
from prefixkit.interleave import interleave
from prefixkit.records import Record, read_records
from prefixkit.server import serve
from tests.experiments.support import of, profile, serve_here, served_here

LENGTH = {"lengths": [96], "short_lengths": [], "repeats": 3}
EVICTION = {"num_gpu_blocks": 16, "ratios": [0.5], "prefix_tokens": 64, "passes": 1}


@pytest.fixture
def visits() -> list[tuple[str, str]]:
    return []


@contextmanager
def without_notebooks(visits: list[tuple[str, str]]):
    """Let a visit be a session in this process instead of a notebook, on servers in threads."""

    def execute(_notebook: Path, output: Path, parameters: Mapping[str, Any]) -> None:
        given = {**parameters, "rounds": parameters.get("rounds")}
        visits.append((given["arm"], output.name))
        with open_session(given.pop("profile"), given.pop("arm"), given.pop("out"), **given) as session:
            session.run_all()

    def attach_or_start(params, **options):
        return serve(params, **options) if params.server.launcher == "url" else serve_here(params)

    turns = patch.object(module, "execute", execute), patch.object(module, "serve", serve_here)
    with turns[0], turns[1], served_here(), patch.object(opening, "serve", attach_or_start):
        yield


def run(tmp_path: Path, visits: list[tuple[str, str]], **experiments: Any) -> tuple[Path, Path]:
    path = profile(tmp_path, switch=False, length=LENGTH, **experiments)
    with without_notebooks(visits):
        return path, interleave(str(path), tmp_path / "out", progress=lambda _: None)


def records(out: Path, arm: str) -> list[Record]:
    return read_records(out / f"{arm}.jsonl")


def test_arms_take_turns_round_by_round_and_the_first_one_changes(tmp_path: Path, visits) -> None:
    path, out = run(tmp_path, visits)
    assert [arm for arm, _ in visits] == ["off", "on", "on", "off", "off", "on"]
    rounds = [p["condition"]["round"] for p in of(records(out, "off"), "probe", experiment="length", phase="cold")]
    assert rounds == [0, 1, 2]
    assert {arm_state(out, path, arm).name for arm in ("on", "off")} == {"complete"}


def test_a_visit_knows_its_server_as_if_it_had_started_it(tmp_path: Path, visits) -> None:
    _, out = run(tmp_path, visits)
    starts = of(records(out, "on"), "run")
    assert len(starts) == 3 and all(r["attached"] for r in starts)
    assert all("--enable-prefix-caching" in r["argv"] and r["dtype"] == "bfloat16" for r in starts)


def test_experiments_on_servers_of_their_own_come_when_both_have_ended(tmp_path: Path, visits) -> None:
    path, out = run(tmp_path, visits, eviction=EVICTION)
    assert visits[-1] == ("on", "measure.on.own.ipynb")
    assert of(records(out, "on"), "probe", experiment="eviction")
    assert of(records(out, "on"), "run")[-1]["experiment"] == "eviction"
    assert arm_state(out, path, "on").name == "complete"


def test_the_same_call_has_nothing_left_to_do(tmp_path: Path, visits) -> None:
    path, out = run(tmp_path, visits)
    made = len(visits)
    with without_notebooks(visits):
        interleave(str(path), out, progress=lambda _: None)
    assert len(visits) == made


def test_it_ends_when_visits_bring_nothing_new(tmp_path: Path, visits) -> None:
    refused = {"fake_reported_caching": True}
    path = profile(tmp_path, engine_args=refused, switch=False, length=LENGTH)
    with without_notebooks(visits):
        interleave(str(path), tmp_path / "out", progress=lambda _: None)
    assert arm_state(tmp_path / "out", path, "off").name == "refused"
    assert [arm for arm, _ in visits].count("off") == 4
