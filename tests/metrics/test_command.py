"""`python -m prefixkit hit-rate`: one JSON object, and an exit status that says whether it answered."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from prefixkit.commands import hit_rate as command
from prefixkit.errors import ParamsError
from tests.fakes.answers import Answer
from tests.metrics.pages import config, counters, series


def run(before: str, after: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    code = command.run(argparse.Namespace(before=before, after=after, json=True))
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("after", "code", "status"),
    [
        (counters([(20, 5)]), 0, "ok"),
        (counters([(0, 0)]), 0, "no-queries"),
        (counters([(0, 0)]) + config("False"), 0, "disabled"),
        (series("vllm:gpu_prefix_cache_hit_rate", 0.5), 0, "gauge-only"),
        (series("vllm:prompt_tokens_total", 0.5), 1, "not-found"),
        ("", 1, "empty"),
        ("<html>", 1, "wrong-page"),
    ],
)
def test_the_exit_status_says_whether_the_question_was_answered(
    after: str, code: int, status: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before_file, after_file = tmp_path / "before.txt", tmp_path / "after.txt"
    before_file.write_text(counters([(0, 0)]), "utf-8")
    after_file.write_text(after, "utf-8")
    got, shown = run(str(before_file), str(after_file), capsys)
    assert (got, shown["status"]) == (code, status)
    assert {"status", "family", "unit", "queries", "hits", "hit_rate", "per_engine", "message"} <= shown.keys()


def test_a_file_and_an_address_can_be_compared(
    answer: Answer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before.txt"
    file.write_text(counters([(0, 0)]), "utf-8")
    code, shown = run(str(file), answer(counters([(8, 2)]).encode()), capsys)
    assert (code, shown["hit_rate"]) == (0, 0.25)


def test_a_failing_address_is_unreachable_and_a_login_page_is_wrong(
    answer: Answer, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, login = answer(b"no", 500), answer(b"<html>Sign in", 200)
    code, shown = run(broken, broken, capsys)
    assert (code, shown["status"], shown["hit_rate"]) == (1, "unreachable", None)
    assert "HTTP 500" in str(shown["message"])
    assert run(login, login, capsys)[1]["status"] == "wrong-page"


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="cannot be read") as caught:
        command.run(argparse.Namespace(before=str(tmp_path / "no"), after=str(tmp_path / "no"), json=True))
    assert caught.value.exit_code == 2


def test_without_json_the_rate_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text(counters([(0, 0)]), "utf-8")
    (tmp_path / "b").write_text(counters([(8, 2)]), "utf-8")
    command.run(argparse.Namespace(before=str(tmp_path / "a"), after=str(tmp_path / "b"), json=False))
    assert capsys.readouterr().out.startswith("hit rate 25.0% (ok): 2 of 8 tokens hit")
