"""Both report notebooks: the same code, short cells, nothing run, placeholders that exist."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from prefixkit import paths
from prefixkit.article import compute, load
from prefixkit.article.article import SECTIONS, language

NOTEBOOKS = {lang: paths.NOTEBOOKS / name for lang, name in (("en", "report.ipynb"), ("zh", "report.zh.ipynb"))}


def cells(lang: str, kind: str) -> list[Any]:
    return [c for c in nbformat.read(NOTEBOOKS[lang], as_version=4).cells if c.cell_type == kind]


def test_both_languages_run_the_same_code() -> None:
    english, chinese = ([(c.id, c.source, c.metadata) for c in cells(lang, "code")] for lang in ("en", "zh"))
    assert english == chinese


def test_both_languages_have_prose_in_the_same_places_with_the_same_placeholders() -> None:
    def places(lang: str) -> list[tuple[str, set[str]]]:
        return [(c.id, set(re.findall(r"\{\{(.*?)\}\}", c.source))) for c in cells(lang, "markdown")]

    assert places("en") == places("zh")


@pytest.mark.parametrize("lang", NOTEBOOKS)
def test_cells_are_short_and_not_run(lang: str) -> None:
    for cell in cells(lang, "code"):
        assert len(cell.source.splitlines()) <= 4
        assert not cell.outputs and cell.execution_count is None


def test_the_first_code_cell_holds_the_parameters() -> None:
    first = cells("en", "code")[0]
    assert first.metadata["tags"] == ["parameters"]
    assert 'data: str = "report/out/cpu"' in first.source


def test_placeholders_are_claims_even_when_nothing_was_measured(case: Callable[[str], Path]) -> None:
    names = {n.strip().split(".")[0] for c in cells("en", "markdown") for n in re.findall(r"\{\{(.*?)\}\}", c.source)}
    for name in ("only_started", "off_failed", "only_cloud"):
        assert names <= set(compute(load(case(name)))), name


def test_everything_that_sections_offer_is_in_the_article() -> None:
    source = "\n".join(c.source for c in cells("en", "code"))
    for section in SECTIONS.values():
        for call, names in (("say", section.sentences), ("figure", section.figures), ("table", section.tables)):
            for name in names:
                assert f'article.{call}("{name}")' in source


def test_the_language_is_the_one_asked_for_then_the_open_notebooks_then_the_stored_one(
    case: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = load(case("core"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert language("", data) == "en"
    monkeypatch.setitem(os.environ, "JPY_SESSION_NAME", "/home/me/notebooks/report.zh.ipynb")
    assert language("", data) == "zh"
    assert language("en", data) == "en"


def test_a_folder_without_records_is_refused_with_a_remedy(tmp_path: Path) -> None:
    from prefixkit.errors import RecordsError

    with pytest.raises(RecordsError, match="make report"):
        load(tmp_path)


def test_stored_settings_win_over_those_of_the_records(tmp_path: Path) -> None:
    from prefixkit.article.data import write_settings
    from tests.fakes import records

    records.write(tmp_path, records.local("on", ()))
    assert load(tmp_path).settings.control_margin == 0.05
    write_settings(tmp_path, {"lang": "zh", "control_margin": 0.1, "key_page": "https://example.org"})
    assert load(tmp_path).settings.control_margin == 0.1
    assert load(tmp_path).settings.lang == "zh"
