"""The claims file, its checks, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from prefixkit.__main__ import main
from prefixkit.claims import Claims, ClaimsError, check, read_claims, text


@pytest.fixture
def claims() -> Claims:
    made = Claims()
    made.add("slope_reduction", 0.967, "fraction", (0.95, 0.98), "on, off: length")
    made.add("tokens_saved", 11904.0, "tokens")
    made.add("missing_ms", None, "ms")
    made.add("model_name", "a*b <i>", "text")
    return made


def test_claims_survive_their_file(claims: Claims, tmp_path: Path) -> None:
    claims.write(tmp_path)
    assert {n: c.record() for n, c in read_claims(tmp_path).items()} == {n: c.record() for n, c in claims.items()}
    stored = json.loads((tmp_path / "claims.json").read_text("utf-8"))
    assert stored["slope_reduction"] == {
        "value": 0.967, "unit": "fraction", "ci": [0.95, 0.98], "source": "on, off: length",
    }  # fmt: skip


def test_a_name_is_used_once(claims: Claims) -> None:
    with pytest.raises(ValueError, match="twice"):
        claims.add("slope_reduction", 1.0, "fraction")


def test_what_is_not_a_finite_number_is_not_a_value() -> None:
    claims = Claims()
    assert claims.add("a", math.nan, "ms", (1.0, 2.0)).record()["value"] is None
    assert claims.add("b", 1.0, "ms", (1.0, math.inf)).ci is None
    assert claims.add("c", 1.0, "ms", (None, 2.0)).ci is None


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unit"):
        Claims().add("a", 1.0, "furlongs")


def test_claims_are_written_with_unit_and_interval_and_text_is_escaped(claims: Claims) -> None:
    assert text(claims["slope_reduction"], part="full") == "96.7% (95% CI 95.0% to 98.0%)"
    assert text(claims["tokens_saved"]) == "11,904\N{NO-BREAK SPACE}tokens"
    assert text(claims["missing_ms"]) == "not measured"
    assert text(claims["model_name"]) == r"a\*b \<i\>"


@pytest.mark.parametrize(
    ("expression", "passed"),
    [
        ("slope_reduction>=0.9", True), ("slope_reduction >= 97 %", False), ("tokens_saved==11904", True),
        ("missing_ms<5", False), ("model_name>0", False), ("slope_reduction!=0.5", True), ("slope_reduction<1e0", True),
    ],
)  # fmt: skip
def test_checks_compare_values(claims: Claims, expression: str, passed: bool) -> None:
    (answer,) = check(claims, expression)
    assert answer.passed is passed


def test_several_checks_are_separated_by_commas(claims: Claims) -> None:
    assert [a.passed for a in check(claims, "slope_reduction>0.9, tokens_saved>1e6")] == [True, False]


@pytest.mark.parametrize("expression", ["slope_reduction", "nothing>1", "slope_reduction>one", "a b>1", "x>1.2.3", ""])
def test_a_check_that_cannot_be_read_is_an_error(claims: Claims, expression: str) -> None:
    with pytest.raises(ClaimsError):
        check(claims, expression)


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"value": 1}}'])
def test_a_broken_file_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(ClaimsError):
        read_claims(tmp_path)


def test_the_command_answers_with_its_exit_code(
    claims: Claims, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims.write(tmp_path)
    source = ["claims", "--from", str(tmp_path)]
    assert main([*source, "--check", "slope_reduction>=0.9"]) == 0
    assert main([*source, "--check", "slope_reduction>=0.99"]) == 1
    assert main([*source, "--check", "nothing>=0.9"]) == 2
    assert main(["claims", "--from", str(tmp_path / "none")]) == 2
    capsys.readouterr()
    assert main([*source, "--check", "slope_reduction>=0.99", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False
    assert main([*source, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens_saved"]["value"] == 11904
    assert main(source) == 0
    assert "slope_reduction = 96.7%" in capsys.readouterr().out
