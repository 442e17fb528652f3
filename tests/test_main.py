"""The command line as a whole: one JSON object whatever happens, and the exit status that goes with it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prefixkit.__main__ import COMMANDS, main
from prefixkit.commands import report as report_command
from prefixkit.commands import setup as setup_command
from prefixkit.model import model_path
from prefixkit.params import load_params

BAD_INPUT = [
    ["probe"],
    ["probe", "--url", "http://127.0.0.1:9/v1?x=1", "--model", "m"],
    ["hit-rate", "/none/before", "/none/after"],
    ["fit", "/none/on.jsonl"],
    ["doctor", "--url", "http://127.0.0.1:9", "--messages", "/none/messages"],
    ["serve", "--profile", "none-such", "--arm", "on"],
    ["serve", "--profile", "cpu", "--arm", "cloud"],
    ["report", "--profile", "none-such"],
    ["report", "--profile", "cpu", "--arms", "on maybe"],
    ["article", "--name", "none-such"],
    ["publish", "--name", "../up", "--profile", "cpu"],
    ["verify", "--name", "none-such"],
    ["claims", "--profile", "none-such"],
    ["setup", "--profile", "none-such"],
    ["interleave", "--profile", "none-such"],
    ["peak", "--profile", "none-such"],
    ["compare", "/none/first", "/none/second"],
]


def the_object(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return what stdout holds; fails unless that is exactly one JSON object."""
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_bad_input_is_tried_for_every_command() -> None:
    assert {words[0] for words in BAD_INPUT} == set(COMMANDS)


@pytest.mark.parametrize("words", BAD_INPUT, ids=" ".join)
def test_bad_input_exits_2_with_one_object(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 2
    error = the_object(capsys)["error"]
    assert error["message"] and error["remedy"]


@pytest.mark.parametrize(
    "words", [["probe", "--url", "http://127.0.0.1:9", "--model", "m"], ["doctor", "--url", "http://127.0.0.1:9"],
              ["hit-rate", "http://127.0.0.1:9/metrics", "http://127.0.0.1:9/metrics"]], ids=" ".join
)  # fmt: skip
def test_nothing_reachable_exits_1_with_one_object(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 1
    assert "error" not in the_object(capsys)


def test_an_unforeseen_failure_is_one_object_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: argparse.Namespace) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(setup_command, "run", run)
    assert main(["setup", "--json"]) == 1
    assert "No space left" in the_object(capsys)["error"]["message"]
    with pytest.raises(OSError, match="No space left"):
        main(["setup"])


def test_what_notebooks_print_stays_out_of_the_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def report(_profile: str, _arms: list[str], progress: Any) -> int:
        print("a line from a cell")
        progress("arm on: complete")
        return 0

    monkeypatch.setattr(report_command, "report", report)
    assert main(["report", "--json"]) == 0
    assert the_object(capsys)["messages"] == ["arm on: complete"]


def test_setup_says_which_environment_a_profile_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["setup", "--profile", "cpu", "--needs"]) == 0
    assert capsys.readouterr().out == "cpu\n"
    assert main(["setup", "--profile", "gpu", "--needs", "--json"]) == 0
    assert the_object(capsys) == {"environment": "gpu", "model": model_path(load_params("gpu"))}


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert set(COMMANDS) <= set(shown.split())


def test_two_runs_are_compared_from_their_folders_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, block in (("a", 16), ("b", 16), ("c", 32)):
        (tmp_path / name).mkdir()
        run = {
            "record": "run",
            "schema": 1,
            "arm": "on",
            "model": {"name": "m", "weights": "real"},
            "block_size": block,
        }
        probes = [
            {"record": "probe", "schema": 1, "arm": "on", "experiment": "length", "phase": "warm", "error": None,
             "prompt_tokens": tokens, "ttft_ms": 10 + tokens / 100 + wobble}
            for tokens in (100, 200, 400) for wobble in (0.0, 0.3, 0.7)
        ]  # fmt: skip
        (tmp_path / name / "on.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [run, *probes]))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"]) == 0
    found = the_object(capsys)
    assert found["status"] == "ok"
    assert any(d["name"] == "slope, on" and d["difference"]["low"] is not None for d in found["differences"])
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "c"), "--json"]) == 1
    assert "block_size is 16 and 32" in the_object(capsys)["note"]


def test_a_reader_that_has_read_enough_is_no_failure(tmp_path: Path) -> None:
    claim = {"value": 1.0, "unit": "ms", "ci": None, "source": "here"}
    (tmp_path / "claims.json").write_text(json.dumps({f"claim_{n}": claim for n in range(20_000)}))
    command = [sys.executable, "-m", "prefixkit", "claims", "--from", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
