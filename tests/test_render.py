from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prefixkit import paths
from prefixkit.errors import RenderError
from prefixkit.export import fonts
from prefixkit.render import CLAIMS, EXECUTED, HTML, PDF, export, render_report, report_notebook, shown
from tests.export.notebooks import code, markdown, notebook, saved
from tests.fakes import records


@pytest.fixture(autouse=True)
def _no_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "face_rules", lambda *_: "")


def test_without_typst_the_page_is_there_and_the_old_pdf_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)
    executed = Path(saved(notebook(markdown("# T")), tmp_path / EXECUTED))
    (tmp_path / PDF).write_bytes(b"of another notebook")
    with pytest.raises(RenderError, match=r"report\.pdf: the PDF needs typst.*report\.html is there"):
        export(executed, tmp_path)
    assert "<h1>T</h1>" in (tmp_path / HTML).read_text()
    assert not (tmp_path / PDF).exists()


def test_a_notebook_that_must_not_be_published_leaves_no_page(tmp_path: Path) -> None:
    executed = Path(saved(notebook(markdown("# T"), markdown("<script></script>")), tmp_path / EXECUTED))
    (tmp_path / HTML).write_text("of another notebook")
    with pytest.raises(RenderError, match=r"report\.html: cell 2 .*holds <script>"):
        export(executed, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {EXECUTED}


def test_paths_in_a_notebook_are_relative_to_the_project() -> None:
    assert shown(paths.OUT / "cpu") == "report/out/cpu"
    assert shown(Path("/elsewhere/x")) == "/elsewhere/x"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_there_is_a_report_notebook_in_each_language(lang: str) -> None:
    assert report_notebook(lang).is_file()


def test_records_become_an_article_with_the_title_of_the_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    records.complete(data)
    (data / "report.json").write_text('{"title": "My {{ answer }} title"}')
    claims = 'open(out + "/claims.json", "w").write(\'{"answer": {"value": 42, "unit": "count"}}\')'
    small = notebook(
        markdown("# Old title\n\nAnn"),
        code('data = ""\nout = ""\nlang = ""', tags=("parameters",)),
        code(f"import os; os.makedirs(out, exist_ok=True); {claims}"),
        markdown("It is {{ answer }}."),
    )
    source = Path(saved(small, tmp_path / "small.ipynb"))
    monkeypatch.setattr("prefixkit.render.report_notebook", lambda _: source)
    render_report(data, out)
    page = (out / HTML).read_text()
    assert "<h1>My 42 title</h1>" in page and "It is 42." in page and "Ann" in page
    assert (out / PDF).read_bytes().startswith(b"%PDF-") and (out / CLAIMS).is_file()
