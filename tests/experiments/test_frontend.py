from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.records import Record
from tests.experiments.support import measure, of, profile

FRONTEND = {"lengths": [96, 160], "concurrency": [1, 3], "repeats": 2}
ONLY = {"switch": False, "length": False, "frontend": FRONTEND}


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("on")
    settings = {"other": {"env": {"VLLM_USE_FASTOKENS": "1"}}, "wide": {"engine_args": {"block_size": 32}}}
    tuning = {"settings": settings}
    return measure(profile(folder, **ONLY, tuning=tuning), "on", folder / "out")


def warm(records: list[Record], experiment: str = "frontend") -> list[Record]:
    return of(records, "probe", experiment=experiment, phase="warm")


def test_both_forms_find_the_same_prompt_in_the_cache(on: list[Record]) -> None:
    for cell in {p["cell"] for p in warm(on)}:
        visit = [p for p in warm(on) if p["cell"] == cell]
        assert {p["condition"]["form"] for p in visit} == {"chat", "token_ids"}
        assert len({(p["prompt_tokens"], p["cached_tokens"]) for p in visit}) == 1
        assert visit[0]["cached_tokens"] == (visit[0]["prompt_tokens"] - 1) // 16 * 16


def test_each_visit_sends_each_form_alone_and_several_at_once(on: list[Record]) -> None:
    visit = [p["condition"] for p in warm(on) if p["cell"] == "frontend/96/r0"]
    counts = [
        sum(c["form"] == form and c["concurrency"] == n for c in visit)
        for form in ("chat", "token_ids")
        for n in (1, 3)
    ]
    assert counts == [1, 3, 1, 3]
    assert all(c["tokenize_ms"] > 0 and c["setting"] is None for c in visit)


def test_the_cold_request_of_a_visit_finds_nothing(on: list[Record]) -> None:
    cold = of(on, "probe", experiment="frontend", phase="cold")
    assert len(cold) == 4 and {p["cached_tokens"] for p in cold} == {0}


def test_settings_are_measured_on_servers_of_their_own(on: list[Record]) -> None:
    starts = [r for r in of(on, "run") if r.get("experiment") == "tuning"]
    assert sorted(r["block_size"] for r in starts) == [16, 32]
    names = {p["condition"]["setting"] for p in warm(on, "tuning")}
    assert names == {"other", "wide"}
    assert on[-1]["status"] == "ok"


def test_arm_off_leaves_it_out(tmp_path: Path) -> None:
    records = measure(profile(tmp_path, **ONLY), "off", tmp_path / "out")
    assert {s["reason"] for s in of(records, "skip", experiment="frontend")} == {"measured on arm on only"}


def test_a_setting_whose_server_does_not_start_is_skipped_and_the_arm_completes(tmp_path: Path) -> None:
    tuning = {"settings": {"none": {"engine_args": {"num_gpu_blocks_override": 1}}}}
    records = measure(profile(tmp_path, **ONLY, tuning=tuning), "on", tmp_path / "out")
    assert of(records, "skip", experiment="tuning")[0]["reason"].startswith("tuning-none: ")
    assert records[-1]["status"] == "ok"
