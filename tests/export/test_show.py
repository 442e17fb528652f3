from __future__ import annotations

from typing import Any

import matplotlib
import pandas as pd
import pytest

from prefixkit.errors import RenderError
from prefixkit.export import literal, show

matplotlib.use("agg")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """What was displayed: data and metadata."""
    found: list[tuple[dict[str, str], dict[str, Any]]] = []

    def keep(data: dict[str, str], *, metadata: dict[str, Any], raw: bool) -> None:
        assert raw
        found.append((data, metadata["prefixkit"]))

    monkeypatch.setattr("IPython.display.display", keep)
    return found


def drawing() -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(layout="constrained")
    axes.scatter([1, 2, 3], [1, 4, 9], label="on")
    axes.legend()
    return figure


def test_the_same_figure_is_the_same_svg_and_is_closed(shown: list[Any]) -> None:
    import matplotlib.pyplot as plt

    for _ in range(2):
        show(drawing(), label="fig-x", caption="Two  \n lines.", alt="Points")
    (first, details), (second, _) = shown
    assert first["image/svg+xml"] == second["image/svg+xml"]
    assert details == {"label": "fig-x", "caption": "Two lines.", "alt": "Points"}
    assert not plt.get_fignums()


def test_a_table_escapes_its_cells_and_shows_a_named_index_as_a_column(shown: list[Any]) -> None:
    show(pd.DataFrame({"file": ["<b>a</b>.jsonl"]}), label="tbl-x", caption="Files.")
    assert "&lt;b&gt;a&lt;/b&gt;.jsonl" in shown[0][0]["text/html"]
    assert "<th>0</th>" not in shown[0][0]["text/html"]
    show(pd.DataFrame({"n": [1]}, index=pd.Index(["on"], name="arm")), label="tbl-y", caption="Arms.")
    assert "<th>arm</th>" in shown[1][0]["text/html"]


@pytest.mark.parametrize(
    ("label", "caption", "alt", "reason"),
    [
        ("fig-x", "A caption.", " ", "no alternative text"),
        ("fig-x", " ", "Points", "no caption"),
        ("x", "A caption.", "Points", "is not `fig-name`"),
        ('fig-x" onload="', "A caption.", "Points", "is not `fig-name`"),
    ],
)
def test_a_figure_that_cannot_be_published_is_refused_at_once(label: str, caption: str, alt: str, reason: str) -> None:
    with pytest.raises(RenderError, match=reason):
        show(None, label=label, caption=caption, alt=alt)


def test_literal_text_is_one_line_without_markup() -> None:
    assert literal("a\n*b* <i> `c` $d$ [e](f) {{ g }} @h 中文") == (
        r"a \*b\* \<i\> \`c\` \$d\$ \[e\]\(f\) \{\{ g \}\} \@h 中文"
    )
