from __future__ import annotations

import contextlib
import re
import zlib

import pytest

from prefixkit.export.article import ArticlePDFExporter
from tests.export.notebooks import markdown, notebook


def opened(pdf: bytes) -> bytes:
    """Return a PDF's bytes with its streams inflated behind them."""
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        with contextlib.suppress(zlib.error):
            parts.append(zlib.decompress(stream))
    return b"\n".join(parts)


def test_the_pdf_is_tagged_ua_1_with_bookmarks_language_and_alternative_texts(pdf: bytes) -> None:
    content = opened(pdf)
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content
    assert b"/MarkInfo" in content and b"/StructTreeRoot" in content and b"/Lang(en)" in content
    assert re.search(rb"/Outlines/First \d+ 0 R/Last \d+ 0 R/Count [1-9]", content)
    assert b"A rising line" in content
    assert content.count(b"/Alt") >= 6


def test_figures_stay_vectors_and_fonts_are_subsets(pdf: bytes) -> None:
    content = opened(pdf)
    assert b"/Subtype/Image" not in content
    names = re.findall(rb"/FontName/([A-Za-z0-9+-]+)", content)
    assert names and all(re.match(rb"[A-Z]{6}\+", name) for name in names)
    assert any(b"NotoSerifSC" in name for name in names)


def test_the_date_is_that_of_the_measurement_not_of_the_rendering(pdf: bytes) -> None:
    assert b"CreationDate(D:20260302100000Z)" in opened(pdf)


def test_source_date_epoch_beats_it_and_without_either_there_is_no_date(
    article: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert b"CreationDate(D:19700102000000Z)" in opened(bytes(ArticlePDFExporter().from_filename(article)[0]))
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    undated = ArticlePDFExporter().from_notebook_node(notebook(markdown("# T")))[0]
    assert b"CreationDate" not in opened(bytes(undated))  # type: ignore[arg-type]


def test_the_chinese_pdf_is_in_chinese(chinese_article: str) -> None:
    content = opened(bytes(ArticlePDFExporter().from_filename(chinese_article)[0]))
    assert b"/Lang(zh)" in content
    assert "缓存".encode() in content
