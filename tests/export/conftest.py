"""One article in each language, rendered once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixkit.export import fonts
from prefixkit.export.article import ArticleHTMLExporter, ArticlePDFExporter
from tests.export.notebooks import code, displayed, figure, markdown, notebook, saved, stdout, table

CLAIMS = {
    "slope_on_ms_per_1k": {"value": 12.34, "unit": "ms/1k", "ci": [11.0, 13.6], "source": "length"},
    "hit_rate_switch": {"value": 0.967, "unit": "fraction", "ci": None, "source": "switch"},
    "stamp": {"value": "commit 0123abc & friends", "unit": "text", "ci": None, "source": "run"},
    "measured_at": {"value": "2026-03-02T10:00:00Z", "unit": "text", "ci": None, "source": "run"},
}
ANSWER = '<script>alert("model")</script><img src=http://evil.example/x.png onerror=alert(1)>'
ROWS = (
    "<table><thead><tr><th>arm</th><th>TTFT, ms</th></tr></thead><tbody>"
    "<tr><td>on &lt;b&gt;records&lt;/b&gt;.jsonl</td><td>12.1</td></tr><tr><td>off</td><td>1,612</td></tr>"
    "</tbody></table>"
)


def english() -> object:
    """Return a notebook with everything that an article may hold."""
    return notebook(
        markdown("# Caching measured\n\nBy the authors"),
        markdown("The slope is {{ slope_on_ms_per_1k.full }}, the hit rate {{ hit_rate_switch }}.", "abstract"),
        markdown(
            "## Question {#sec-question}\n\nBlocks are kept [@kwon2023], see @fig-line, @tbl-rows and @sec-method.[^1] "
            "Time is $\\alpha+\\beta n$.\n\n$$\\hat\\beta=\\frac{a}{b}$$\n\n\\begin{align}a&=b\\\\c&=d\\end{align}\n\n"
            "[^1]: A note. 中文也在这里。"
        ),
        code("draw()", figure(caption="A line, see @tbl-rows; slope $\\beta$.")),
        code("tabulate()", table(ROWS)),
        markdown("## Method {#sec-method}\n\n### Words\n\n- one\n- two\n\n> quoted\n\n```bash\nmake report\n```"),
        markdown("**Aside.** Boxed.", "box"),
        code("print(answer)", stdout(f"the model said ``` {ANSWER} {{{{ not_a_claim }}}}\n"), tags=("show_code",)),
        code("bar()", stdout("\x1b[31m 10%\r100%\x1b[0m\n")),
        code("hidden()", displayed("application/vnd.jupyter.widget-view+json", {"model_id": "x"})),
        markdown("## Counts {.appendix}\n\nAll."),
    )


def chinese() -> object:
    """Return a short notebook in Chinese."""
    return notebook(
        markdown("# 缓存"),
        markdown("命中率为 {{ hit_rate_switch }}。", "abstract"),
        markdown("## 方法 {#sec-method}\n\n见 [@fig-line] 与 [@sec-method]，“引号”就在\n此处。 下一句。"),
        code("draw()", figure(caption="一条线。", alt="一条上升的线")),
        lang="zh",
    )


def _folder(factory: pytest.TempPathFactory, book: object) -> str:
    folder: Path = factory.mktemp("article")
    (folder / "claims.json").write_text(json.dumps(CLAIMS))
    return saved(book, folder / "report.ipynb")


@pytest.fixture(scope="session")
def article(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The English notebook, saved beside its claims."""
    return _folder(tmp_path_factory, english())


@pytest.fixture(scope="session")
def page(article: str) -> str:
    """The English article as HTML."""
    return str(ArticleHTMLExporter().from_filename(article)[0])


@pytest.fixture(scope="session")
def pdf(article: str) -> bytes:
    """The English article as PDF."""
    return bytes(ArticlePDFExporter().from_filename(article)[0])


@pytest.fixture(scope="session")
def chinese_article(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Chinese notebook, saved beside its claims."""
    return _folder(tmp_path_factory, chinese())


@pytest.fixture
def no_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the fonts out, which take most of the time."""
    monkeypatch.setattr(fonts, "face_rules", lambda *_: "")
