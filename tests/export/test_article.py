from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jupyter_server.nbconvert import handlers
from jupyter_server.serverapp import ServerApp
from nbconvert.exporters import get_export_names, get_exporter
from nbformat import NotebookNode

from prefixkit.errors import RenderError
from prefixkit.export.article import ArticleHTMLExporter, ArticlePDFExporter
from tests.export.notebooks import SVG, code, displayed, figure, markdown, notebook, stdout, table


class Outline(HTMLParser):
    """The ids, links and headings of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if found.get("id") else []  # type: ignore[list-item]
        self.links += [found["href"]] if tag == "a" and found.get("href") else []  # type: ignore[list-item]
        self.images += [found] if tag == "img" else []


def text_of(page: str) -> str:
    """Return a page's text without its head."""
    return re.sub(r"[ \n\u2002]+", " ", re.sub(r"<[^>]*>", " ", page.split("</head>", 1)[1]))


def offered() -> list[str]:
    """Return the names of our exporters that are on offer."""
    return [name for name in get_export_names() if name.startswith("article")]


def test_a_jupyter_server_offers_each_exporter_once_under_a_name_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered() == ["article-html", "article-pdf", "article_html", "article_pdf"]
    monkeypatch.setattr(ServerApp, "initialized", lambda: True)
    assert offered() == ["article_html", "article_pdf"]
    assert all(re.fullmatch(handlers._format_regex, name) for name in offered())
    assert [get_exporter(name).export_from_notebook for name in offered()] == ["Article HTML", "Article PDF"]


def test_nbconvert_writes_one_file_each(article: str, tmp_path: Path) -> None:
    for name in ("article-html", "article-pdf"):
        command = [sys.executable, "-m", "nbconvert", "--to", name, "--output-dir", str(tmp_path), article]
        subprocess.run(command, check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.pdf"]
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_the_page_is_small_and_loads_nothing(page: str) -> None:
    assert len(page.encode()) < 1_000_000
    assert "<script" not in page
    styles = re.findall(r"url\(([^)]{1,20})", page.split("</head>", 1)[0])
    sources = [str(image["src"]) for image in Outline(page).images]
    assert styles and sources and all(source.startswith("data:") for source in styles + sources)


def test_placeholders_are_filled_in_text_and_never_in_output(page: str) -> None:
    text = text_of(page)
    assert "The slope is 12.3\N{NO-BREAK SPACE}ms per 1,000 tokens (95% CI 11.0 to 13.6), the hit rate 96.7%." in text
    assert "{{ not_a_claim }}" in text


def test_sections_figures_and_tables_are_numbered_and_every_link_has_its_target(page: str) -> None:
    text, outline = text_of(page), Outline(page)
    for expected in ("1 Question", "2 Method", "2.1 Words", "A Counts", "Figure\N{NO-BREAK SPACE}1. A line"):
        assert expected in text, expected
    assert re.search(r"see Figure\s1 , Table\s1 and Section\s2 \.", text)
    local = {link[1:] for link in outline.links if link.startswith("#")}
    assert {"fig-line", "tbl-rows", "sec-method", "sec-question", "ref-kwon2023"} <= local
    assert local <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))


def test_the_page_has_contents_one_title_formulas_citations_and_notes(page: str) -> None:
    tags = Outline(page).tags
    assert tags.count("h1") == 1 and tags.count("nav") == 1 and tags.count("main") == 1
    assert tags.count("math") == 4
    assert "alttext" in page or 'encoding="application/x-tex"' in page
    assert "Kwon et al. 2023" in text_of(page) and 'role="doc-endnotes"' in page
    assert '<html lang="en-GB">' in page


def test_every_picture_has_alternative_text(page: str) -> None:
    assert [image["alt"] for image in Outline(page).images] == ["A rising line"]


def test_text_of_a_model_and_of_a_file_name_is_escaped(page: str) -> None:
    assert "&lt;script&gt;alert(" in page and "&lt;img src=http://evil.example" in page
    assert "on &lt;b&gt;records&lt;/b&gt;.jsonl" in page
    assert {"script", "b"}.isdisjoint(Outline(page).tags)


def test_progress_bars_show_their_last_state_without_colours(page: str) -> None:
    assert "100%" in page and "10%\r" not in page and "\x1b" not in page


def test_code_is_hidden_unless_its_cell_asks(page: str) -> None:
    assert "print(answer)" in page and "draw()" not in page


def test_numbers_of_a_table_stand_right(page: str) -> None:
    assert re.search(r'<td style="text-align: right;">1,612</td>', page)
    assert re.search(r'<td style="text-align: left;">off</td>', page)


def test_negative_numbers_stand_right_too() -> None:
    rows = "<tr><td>−0.307 (−1.23 to 0.619)</td></tr><tr><td>4.81 (3.98 to 5.65)</td></tr>"
    html = f"<table><thead><tr><th>Saved</th></tr></thead><tbody>{rows}</tbody></table>"
    book = notebook(markdown("# T"), code("t()", table(html)))
    assert '<td style="text-align: right;">−0.307' in ArticleHTMLExporter().from_notebook_node(book)[0]


def test_light_dark_print_and_narrow_screens_have_their_styles(page: str) -> None:
    for rule in ("prefers-color-scheme: dark", "@media print", "max-width: 32rem", "color-scheme: light dark"):
        assert rule in page


def test_the_same_notebook_gives_the_same_page_and_the_same_pdf(article: str, page: str, pdf: bytes) -> None:
    assert ArticleHTMLExporter().from_filename(article)[0] == page
    assert ArticlePDFExporter().from_filename(article)[0] == pdf


def test_chinese_words_and_references(chinese_article: str) -> None:
    page = str(ArticleHTMLExporter().from_filename(chinese_article)[0])
    text = text_of(page)
    assert "图\N{NO-BREAK SPACE}1. 一条线。" in text and "第 1 节" in text and "目录" in text and "摘要" in text
    assert "“引号”就在此处。下一句。" in text
    assert '<html lang="zh-CN">' in page
    assert "Article Han" in page


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (markdown("<script>x()</script>"), "holds <script>"),
        (markdown("<ScRiPt src='a.js'></ScRiPt>"), "holds <script>"),
        (markdown("Some <iframe src='https://e.example'></iframe>"), "holds <iframe>"),
        (markdown("![x](https://e.example/a.png)"), r"external resource https://e\.example/a\.png"),
        (markdown("![x](//e.example/a.png)"), r"external resource //e\.example"),
        (markdown("<img alt=x src=http://e.example/a.png>"), "loads an external resource"),
        (markdown("<p onclick='x()'>y</p>"), "event handler"),
        (markdown("[x](javascript:alert(1))"), "links to javascript:"),
        (markdown("![](a.svg)"), "without alternative text"),
        (markdown("![a picture](gone.svg)"), r"picture gone\.svg is missing"),
        (markdown('```{=typst}\n#read("x")\n```'), "holds raw typst"),
        (markdown("See @fig-gone."), "refers to unknown @fig-gone"),
        (markdown("It is {{ gone }}."), "unknown claim 'gone'"),
        (code("x", displayed("text/html", "<b>a</b><script>x()</script>")), "holds <script>"),
        (code("x", displayed("text/markdown", "<script>x()</script>")), "holds <script>"),
        (code("x", displayed("text/html", "<img src='https://e.example/a.png'>")), "external resource"),
        (code("x", displayed("image/svg+xml", SVG)), "figure without alternative text"),
        (code("x", figure(), figure()), "label fig-line stands twice"),
    ],
)
@pytest.mark.usefixtures("no_fonts")
@pytest.mark.parametrize("exporter", [ArticleHTMLExporter, ArticlePDFExporter])
def test_what_must_not_be_published_is_refused_with_its_cell(
    exporter: type[ArticleHTMLExporter] | type[ArticlePDFExporter], cell: object, reason: str
) -> None:
    with pytest.raises(RenderError, match=rf"cell 2 \[.*{reason}"):
        exporter().from_notebook_node(notebook(markdown("# T"), cell))  # type: ignore[arg-type]


@pytest.mark.parametrize("cells", [[], [markdown("No title")], [code("x"), markdown("# T")], [markdown("## T")]])
def test_a_notebook_without_a_title_is_refused(cells: list[NotebookNode]) -> None:
    with pytest.raises(RenderError, match="does not begin with a Markdown cell `# Title`"):
        ArticlePDFExporter().from_notebook_node(notebook(*cells))


@pytest.mark.usefixtures("no_fonts")
def test_an_unknown_citation_is_refused() -> None:
    with pytest.raises(RenderError, match="citation nobody1900 not found"):
        ArticleHTMLExporter().from_notebook_node(notebook(markdown("# T\n\nSee [@nobody1900].")))


@pytest.mark.usefixtures("no_fonts")
@pytest.mark.parametrize("exporter", [ArticleHTMLExporter, ArticlePDFExporter])
def test_markup_in_a_caption_an_alternative_text_or_a_fence_breaks_nothing(
    exporter: type[ArticleHTMLExporter] | type[ArticlePDFExporter],
) -> None:
    odd = '"}) <b> ]{.x} \\ % # $'
    body = exporter().from_notebook_node(
        notebook(
            markdown("# T"),
            code("x", figure(caption="::: {.x}", alt=odd), stdout("````\n:::\n```{=html}\n<script>\n")),
            code("y", table("<table><tr><td>&lt;script&gt;</td></tr></table>")),
        )
    )[0]
    if isinstance(body, str):
        assert Outline(body).images[0]["alt"] == odd
        assert "&lt;script&gt;" in body and "<script" not in body


@pytest.mark.usefixtures("no_fonts")
@pytest.mark.parametrize("exporter", [ArticleHTMLExporter, ArticlePDFExporter])
def test_pictures_beside_the_notebook_and_attached_ones_are_taken_in(
    exporter: type[ArticleHTMLExporter] | type[ArticlePDFExporter], tmp_path: Path
) -> None:
    (tmp_path / "a b.svg").write_text(SVG)
    attached = markdown("![attached](attachment:c.svg)")
    attached["attachments"] = {"c.svg": {"image/svg+xml": SVG}}
    book = notebook(markdown("# T\n\n![beside](<a b.svg>)"), attached)
    body = exporter().from_notebook_node(book, resources={"metadata": {"path": str(tmp_path)}})[0]
    assert not isinstance(body, str) or [image["alt"] for image in Outline(body).images] == ["beside", "attached"]


@pytest.mark.usefixtures("no_fonts")
def test_widgets_without_state_do_not_stop_the_export() -> None:
    book = notebook(markdown("# T"), code("bar()", displayed("application/vnd.jupyter.widget-view+json", {})))
    book.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"version_major": 2}}
    assert "an object" in ArticleHTMLExporter().from_notebook_node(book)[0]


@pytest.mark.parametrize(
    ("module", "exporter", "reason"),
    [("typst", ArticlePDFExporter, "needs typst"), ("pypandoc", ArticleHTMLExporter, "pandoc is missing")],
)
def test_a_missing_tool_is_named(
    module: str,
    exporter: type[ArticleHTMLExporter] | type[ArticlePDFExporter],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RenderError, match=reason):
        exporter().from_notebook_node(notebook(markdown("# T")))


@pytest.mark.parametrize(("value", "reason"), [("soon", "SOURCE_DATE_EPOCH is 'soon'"), ("-1", "SOURCE_DATE_EPOCH")])
def test_a_date_that_is_none_is_refused(value: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with pytest.raises(RenderError, match=reason):
        ArticlePDFExporter().from_notebook_node(notebook(markdown("# T")))
