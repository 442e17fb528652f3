"""Replaying one's own prompts: in order, predicted, private."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixkit.errors import ParamsError
from prefixkit.records import Record
from tests.experiments.support import measure, of, profile

RULES = "Feed the cats at nine in the morning. Never open the gate of the yard. Call the vet before noon. " * 3
SECRET = "zanzibar"


def workload(folder: Path, *extra: str) -> Path:
    path = folder / "mine.jsonl"
    lines = [
        json.dumps({"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": f"{SECRET} {i}?"}]})
        for i in range(5)
    ]
    path.write_text("\n".join([*lines, *extra]) + "\n", "utf-8")
    return path


def run(folder: Path, arm: str, path: Path, **changes: object) -> list[Record]:
    chosen = profile(folder, switch=False, length=False, workload={"path": str(path), **changes})
    return measure(chosen, arm, folder / "out")


def sent(records: list[Record]) -> list[Record]:
    return [p for p in of(records, "probe", experiment="workload") if p["phase"] != "warmup"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workload")


@pytest.fixture(scope="module")
def on(folder: Path) -> list[Record]:
    return run(folder, "on", workload(folder))


def test_requests_are_sent_in_order_and_hit_what_arithmetic_says(on: list[Record]) -> None:
    assert [p["condition"]["request"] for p in sent(on)] == [1, 2, 3, 4, 5]
    for probe in sent(on):
        assert probe["cached_tokens"] == probe["condition"]["predicted_cached_tokens"]
    assert [p["phase"] for p in sent(on)] == ["cold", "warm", "warm", "warm", "warm"]


def test_what_the_prompts_share_is_recorded_once(on: list[Record]) -> None:
    (found,) = of(on, "workload")
    assert found["requests"] == 5
    assert found["hits"] == found["ideal_hits"] == sum(p["cached_tokens"] for p in sent(on))
    assert found["prefixes"][0]["requests"] == 5


def test_no_text_of_a_prompt_is_in_the_records(folder: Path, on: list[Record]) -> None:
    assert on
    text = (folder / "out" / "on.jsonl").read_text("utf-8")
    assert SECRET not in text
    assert "Feed the cats" not in text


def test_the_same_requests_are_replayed_off(folder: Path, on: list[Record]) -> None:
    off = run(folder, "off", workload(folder))
    assert [p["condition"]["prompt"] for p in sent(off)] == [p["condition"]["prompt"] for p in sent(on)]
    assert {p["phase"] for p in sent(off)} == {"cold"}


def test_a_prompt_that_the_model_cannot_take_is_recorded_and_the_run_goes_on(tmp_path: Path) -> None:
    long = json.dumps({"messages": [{"role": "user", "content": "word " * 20_000}]})
    short = json.dumps({"messages": [{"role": "user", "content": "word"}]})
    records = run(tmp_path, "on", workload(tmp_path, long, short))
    fifth, sixth = sent(records)[5:]
    assert fifth["error"]["kind"] == "too-long"
    assert "line 6: 20010 tokens, the model takes 8191" in fifth["error"]["message"]
    assert fifth["prompt_tokens"] > 20_000
    assert sixth["error"] is None
    assert of(records, "workload")[0]["left_out"] == 1


def test_a_malformed_line_stops_before_a_server_starts(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match=r"mine\.jsonl: line 6"):
        run(tmp_path, "on", workload(tmp_path, "{oops"))
    assert not list((tmp_path / "out").iterdir())


def test_a_limit_replays_the_first_requests_only(tmp_path: Path) -> None:
    assert len(sent(run(tmp_path, "on", workload(tmp_path), limit=2))) == 2
