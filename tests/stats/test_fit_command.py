"""`python -m prefixkit fit`."""

from __future__ import annotations

import argparse
import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from prefixkit.commands import fit as command
from prefixkit.errors import RecordsError
from tests.stats.simulated import run


def call(*paths: Path, as_json: bool = True) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return command.run(parser.parse_args([*map(str, paths), *(["--json"] if as_json else [])]))


def test_json_holds_the_documented_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on, off = tmp_path / "on.jsonl", tmp_path / "off.jsonl.gz"
    on.write_text("".join(json.dumps(r) + "\n" for r in run() if r["arm"] == "on"))
    off.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in run() if r["arm"] == "off").encode()))
    assert call(on, off) == 0
    answer = json.loads(capsys.readouterr().out)
    for arm in ("on", "off"):
        assert {"status", "n", "slope_ms_per_1k", "slope_ci", "intercept_ms", "intercept_ci", "r2"} <= set(
            answer["arms"][arm]
        )
        assert answer["arms"][arm]["status"] == "ok"
        assert answer["arms"][arm]["n"] == 25
    assert answer["slope_reduction"]["status"] == "ok"
    low, high = answer["slope_reduction"]["ci"]
    assert low < 1 - 6.9 / 207.6 < high
    assert isinstance(answer["notes"], list)


def test_data_that_cannot_be_fitted_are_answered_with_statuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "on.jsonl"
    path.write_text("")
    assert call(path) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["arms"]["off"]["status"] == "empty"
    assert answer["slope_reduction"]["ci"] is None


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"ttft_ms": math.nan}, "2 missing value"),
    "null": ({"prompt_tokens": None}, "2 missing value"),
    "text": ({"ttft_ms": "fast", "prompt_tokens": "353"}, "2 missing value"),
    "negative": ({"ttft_ms": -3.0}, "2 not positive"),
    "an arm that cannot be written": ({"arm": "\ud800\n"}, "In no line: 2 ?? cold"),
    "an unknown arm": ({"arm": ["off"], "phase": "cold"}, "In no line: 2"),
    "a phase that its arm does not have": ({"arm": "off", "phase": "warm"}, "In no line: 2 off warm"),
    "an unknown phase": ({"phase": {"name": "cold"}}, "2 other phase"),
    "text that cannot be written": ({"profile": "\ud800\n<b>"}, "several profiles"),
    "another profile": ({"profile": "gpu"}, "several profiles are fitted together: cpu, gpu"),
}


@pytest.mark.parametrize(("change", "said"), ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("as_json", [True, False])
def test_odd_records_are_counted_and_harm_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str, as_json: bool
) -> None:
    records = [{**r, "profile": "cpu"} for r in run()]
    records += [{**records[0], "order": 900 + i, **change} for i in range(2)]
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    assert call(path, as_json=as_json) == 0
    out = capsys.readouterr().out
    out.encode("utf-8")
    answer = "\n".join(json.loads(out)["notes"]) if as_json else out
    assert said in answer


def test_without_json_a_table_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in run()))
    assert call(path, as_json=False) == 0
    assert "Slope reduction" in capsys.readouterr().out


def test_an_unreadable_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(RecordsError) as caught:
        call(tmp_path / "none.jsonl")
    assert caught.value.exit_code == 2
