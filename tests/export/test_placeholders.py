from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixkit.errors import RenderError
from prefixkit.export.placeholders import CLAIMS_MIME, claim_text, fill, find_claims, number, preview
from tests.export.notebooks import code, displayed, markdown, notebook, saved

CLAIMS = {
    "slope": {"value": 12.345, "unit": "ms/1k", "ci": [11.0, 13.61]},
    "rate": {"value": 0.9671, "unit": "fraction", "ci": [0.951, 0.98]},
    "difference": {"value": -3.21, "unit": "ms", "ci": None},
    "n": {"value": 12345, "unit": "tokens", "ci": None},
    "gone": {"value": None, "unit": "ms", "ci": None},
    "model": {"value": "a_b*c*<i>", "unit": "text", "ci": None},
}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1951.3, "ms", "1,951"),
        (50.24, "ms", "50.2"),
        (3.271, "ms", "3.27"),
        (0.01234, "ms", "0.0123"),
        (12345, "tokens", "12,345"),
        (-3.21, "ms", "−3.21"),
        (0.97, "fraction", "97.0"),
        (-0.0001, "fraction", "0.0"),
        (0, "count", "0"),
        (2.0, "x", "2.00"),
    ],
)
def test_a_number_has_three_digits_a_true_minus_and_thousands(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("markdown_text", "filled"),
    [
        ("{{ slope }}", "12.3\N{NO-BREAK SPACE}ms per 1,000 tokens"),
        ("{{slope.value}}", "12.3"),
        ("{{ slope.ci }}", "95% CI 11.0 to 13.6\N{NO-BREAK SPACE}ms per 1,000 tokens"),
        ("{{ slope.full }}", "12.3\N{NO-BREAK SPACE}ms per 1,000 tokens (95% CI 11.0 to 13.6)"),
        ("{{ slope.low }}", "11.0\N{NO-BREAK SPACE}ms per 1,000 tokens"),
        ("{{ rate }}", "96.7%"),
        ("{{ rate.ci }}", "95% CI 95.1% to 98.0%"),
        ("{{ difference }}", "−3.21\N{NO-BREAK SPACE}ms"),
        ("{{ difference.abs }}", "3.21\N{NO-BREAK SPACE}ms"),
        ("{{ difference.full }}", "−3.21\N{NO-BREAK SPACE}ms"),
        ("{{ difference.ci }}", "not measured"),
        ("{{ gone }}", "not measured"),
        ("{{ model }}", r"a\_b\*c\*\<i\>"),
    ],
)
def test_a_placeholder_is_filled_by_unit_and_part(markdown_text: str, filled: str) -> None:
    assert fill(markdown_text, CLAIMS, "en", "cell 1") == filled


def test_chinese_units_and_intervals() -> None:
    assert (
        claim_text(CLAIMS["slope"], "full", "zh") == "12.3\N{NO-BREAK SPACE}毫秒/千 token (95% 置信区间 11.0 至 13.6)"
    )
    assert claim_text(CLAIMS["gone"], None, "zh") == "未测量"


def test_an_unknown_name_is_refused_with_its_cell_and_near_names() -> None:
    with pytest.raises(RenderError, match=r"cell 7: unknown claim 'slop' -> did you mean slope"):
        fill("It is {{ slop }}.", CLAIMS, "en", "cell 7")


@pytest.mark.parametrize("text", ["{{ slope.bold }}", "{{ 1 + 1 }}", "{{}}", "{{ slope | upper }}"])
def test_what_is_not_a_placeholder_is_refused(text: str) -> None:
    with pytest.raises(RenderError, match=r"cell 7: .*is not a placeholder"):
        fill(text, CLAIMS, "en", "cell 7")


def test_claims_come_from_the_data_folder_then_from_beside_the_notebook_then_from_its_outputs(tmp_path: Path) -> None:
    def store(folder: str, name: str) -> Path:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "claims.json").write_text(json.dumps({name: {"value": 1}}))
        return tmp_path / folder

    carried = displayed(CLAIMS_MIME, {"carried": {"value": 1}})
    book = notebook(markdown("# T"), code("carry()", carried))
    assert list(find_claims(book, tmp_path)) == ["carried"]
    beside = store("beside", "beside")
    assert list(find_claims(book, beside)) == ["beside"]
    book.metadata["papermill"] = {"parameters": {"data": str(store("data", "data")), "out": ""}}
    assert list(find_claims(book, beside)) == ["data"]
    book.metadata["papermill"]["parameters"]["out"] = str(store("out", "out"))
    assert list(find_claims(book, beside)) == ["out"]


def test_a_broken_claims_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "claims.json").write_text("{")
    with pytest.raises(RenderError, match=r"claims\.json: not a claims file"):
        find_claims(notebook(markdown("# T")), tmp_path)


def test_a_notebook_open_in_jupyterlab_is_previewed_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "claims.json").write_text(json.dumps(CLAIMS))
    saved(
        notebook(markdown("# T"), code("preview(data)"), markdown("The rate is {{ rate }}.")), tmp_path / "open.ipynb"
    )
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "open.ipynb"))
    shown: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda text: shown.append(text.data))
    preview(tmp_path)
    assert shown == ["# T\n\nThe rate is 96.7%."]
    monkeypatch.delenv("JPY_SESSION_NAME")
    with pytest.raises(RenderError, match="no notebook to preview"):
        preview(tmp_path)
