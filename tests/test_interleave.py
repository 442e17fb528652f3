from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from prefixkit import interleave as module
from prefixkit.errors import ParamsError, ServerError
from prefixkit.experiments import arm_state, open_session, opening
from prefixkit.interleave import InterleaveError, interleave
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
        return path, interleave([str(path)], tmp_path / "out", progress=lambda _: None)[0]


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
        interleave([str(path)], out, progress=lambda _: None)
    assert len(visits) == made


def test_it_ends_when_visits_bring_nothing_new(tmp_path: Path, visits) -> None:
    refused = {"fake_reported_caching": True}
    path = profile(tmp_path, engine_args=refused, switch=False, length=LENGTH)
    with without_notebooks(visits):
        interleave([str(path)], tmp_path / "out", progress=lambda _: None)
    assert arm_state(tmp_path / "out", path, "off").name == "refused"
    assert [arm for arm, _ in visits].count("off") == 4


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two profiles, `first` and `second`, whose records go to folders of those names."""
    monkeypatch.setattr(module.paths, "OUT", tmp_path)
    made = []
    for name in ("first", "second"):
        folder = tmp_path / f"params-{name}"
        folder.mkdir()
        made.append(str(profile(folder, switch=False, length=LENGTH).rename(folder / f"{name}.yaml")))
    return made


def test_several_profiles_take_turns_and_the_order_turns_round(tmp_path: Path, visits, two: list[str]) -> None:
    lines: list[str] = []
    with without_notebooks(visits):
        assert interleave(two, rounds=2, progress=lines.append) == [tmp_path / "first", tmp_path / "second"]
    turns = [line.split(": ")[1] for line in lines if line.startswith("visit")]
    first = ["first/off", "first/on", "second/off", "second/on"]
    assert turns == [*first, *reversed(first)]
    assert {arm_state(tmp_path / Path(p).stem, p, arm).name for p in two for arm in ("on", "off")} == {"complete"}


def test_a_profile_whose_server_does_not_start_leaves_the_others(tmp_path: Path, visits, two: list[str]) -> None:
    started: list[Any] = []

    def fails(params, **options):
        if "second" in str(options["log_path"]) and params.enable_prefix_caching:
            raise ServerError("no room", "make some")
        started.append(serve_here(params))
        return started[-1]

    with (
        without_notebooks(visits),
        patch.object(module, "serve", fails),
        pytest.raises(ServerError, match="second/on: no room"),
    ):
        interleave(two, progress=lambda _: None)
    assert arm_state(tmp_path / "first", two[0], "on").name == "complete"
    assert not (tmp_path / "second" / "off.jsonl").exists()
    assert len(started) == 3 and all(server.fake is None for server in started)


def test_several_failures_are_all_named(visits, two: list[str]) -> None:
    def fails(*_: object, **__: object):
        raise ServerError("no room", "make some")

    with (
        without_notebooks(visits),
        patch.object(module, "serve", fails),
        pytest.raises(InterleaveError, match="first/off: no room; second/off: no room"),
    ):
        interleave(two, progress=lambda _: None)
    assert visits == []


def test_an_arm_that_fails_is_left_and_the_rest_is_measured(tmp_path: Path, visits, two: list[str]) -> None:
    with without_notebooks(visits):
        visit = module.execute

        def execute(notebook: Path, output: Path, parameters: Mapping[str, Any]) -> None:
            if output.parent.name == "first" and parameters["arm"] == "on":
                visits.append(("on", "failed"))
                raise ServerError("died", "look at the log")
            visit(notebook, output, parameters)

        with patch.object(module, "execute", execute), pytest.raises(ServerError, match="died"):
            interleave(two, progress=lambda _: None)
    assert visits.count(("on", "failed")) == 1
    assert arm_state(tmp_path / "first", two[0], "off").name == "complete"
    assert {arm_state(tmp_path / "second", two[1], arm).name for arm in ("on", "off")} == {"complete"}


def test_servers_of_fixed_memory_start_together(tmp_path: Path, visits) -> None:
    path = profile(tmp_path, engine_args={"kv_cache_memory_bytes": 1 << 30}, switch=False, length=LENGTH)
    asked: list[list[str]] = []

    def together(wanted, **_):
        asked.append([one.name for one in wanted])
        return [serve_here(one.params) for one in wanted]

    with without_notebooks(visits), patch.object(module, "serve_together", together):
        interleave([str(path)], tmp_path / "out", progress=lambda _: None)
    assert asked == [["small/off", "small/on"]]
    assert arm_state(tmp_path / "out", path, "on").name == "complete"


def test_one_folder_for_two_profiles_is_refused(tmp_path: Path, two: list[str]) -> None:
    with pytest.raises(ParamsError, match="several profiles"):
        interleave(two, tmp_path / "out")
    with pytest.raises(ParamsError, match="one name"):
        interleave([two[0], two[0]])
