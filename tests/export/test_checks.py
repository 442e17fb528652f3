from __future__ import annotations

import pytest
from nbformat import v4

from prefixkit.errors import RenderError
from prefixkit.export.checks import check_notebook, check_page, drop_broken_widgets
from tests.export.notebooks import code, markdown, notebook


def test_an_error_output_is_refused_with_its_cell() -> None:
    failed = v4.new_output("error", ename="ValueError", evalue="no records", traceback=[])
    book = notebook(markdown("# T"), code("load()", failed))
    with pytest.raises(RenderError, match=r"cell 2 \[.*\] \(load\(\)\): stopped with ValueError: no records"):
        check_notebook(book)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((1, 3, 2), r"\(b\(\)\): ran as number 3, not as number 2"),
        ((2, 3, 4), r"\(a\(\)\): ran as number 2, not as number 1"),
        ((1, None, None), r"\(b\(\)\): has not run"),
        ((1, 2, 2), r"\(c\(\)\): ran as number 2"),
    ],
)
def test_cells_that_did_not_run_in_order_are_refused(counts: tuple[int | None, ...], reason: str) -> None:
    book = notebook(code("a()"), code("b()"), code("c()"))
    for cell, count in zip(book.cells, counts, strict=True):
        cell.execution_count = count
    with pytest.raises(RenderError, match=f"{reason}.* -> restart the kernel"):
        check_notebook(book)


def test_an_empty_code_cell_does_not_count() -> None:
    book = notebook(code("a()"), code(" "), code("b()"))
    book.cells[1].execution_count, book.cells[2].execution_count = None, 2
    check_notebook(book)


@pytest.mark.parametrize(
    ("widgets", "kept"),
    [
        ({"application/vnd.jupyter.widget-state+json": {"version_major": 2}}, False),
        ({"application/vnd.jupyter.widget-state+json": {"version_major": 2, "state": {}}}, True),
    ],
)
def test_widget_metadata_without_a_state_is_dropped(widgets: dict[str, object], kept: bool) -> None:
    book = notebook(markdown("# T"))
    book.metadata["widgets"] = widgets
    drop_broken_widgets(book)
    assert ("widgets" in book.metadata) is kept


@pytest.mark.parametrize(
    "markup",
    [
        "<script>x()</script>",
        "<img src='http://e.example/a.png'>",
        "<img src='picture.png'>",
        "<link rel=stylesheet href='//e.example/a.css'>",
        "<p onclick='x()'>",
        "<a href=' javascript:x()'>y</a>",
        "<iframe src='data:,'></iframe>",
        "<style>body{background:url(https://e.example/a.png)}</style>",
        "<style>@import 'https://e.example/a.css'</style>",
        "<p style='background:url(http://e.example)'>",
        "<meta http-equiv=refresh content='0;url=http://e.example'>",
    ],
)
def test_a_page_that_runs_or_loads_anything_is_refused(markup: str) -> None:
    with pytest.raises(RenderError, match="would run or load something"):
        check_page(f"<!DOCTYPE html><title>t</title>{markup}")


def test_links_embedded_data_and_escaped_markup_pass() -> None:
    check_page(
        "<style>@font-face{src:url(data:font/woff2;base64,AA)}</style><img src='data:image/svg+xml;base64,AA'>"
        "<a href='https://docs.vllm.ai/'>x</a><a href='#fig-x'>y</a><p>&lt;script&gt; url(http://x.example)</p>"
    )
