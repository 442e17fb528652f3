from __future__ import annotations

import io

import pytest
from fontTools.ttLib import TTFont

from prefixkit.export import fonts


def glyphs(file: bytes) -> set[int]:
    """Return the characters that a font file draws."""
    return set(TTFont(io.BytesIO(file)).getBestCmap())


def test_a_subset_holds_what_is_used_and_little_else() -> None:
    made = fonts.subset(fonts.FONTS / "source-serif-4-400-normal.woff2", set("TTFT, ms中"))
    assert glyphs(made) == {ord(c) for c in "TFms, "}
    assert made == fonts.subset(fonts.FONTS / "source-serif-4-400-normal.woff2", set("TTFT, ms中"))
    assert len(made) < 4000


def test_the_formula_font_keeps_its_table_for_formulas() -> None:
    made = fonts.subset(fonts.FONTS / "stix-two-math.woff2", set("x=∑"), keep_math=True)
    assert "MATH" in TTFont(io.BytesIO(made))


@pytest.mark.parametrize(("page", "has_chinese"), [("<p>plain</p>", False), ("<p>前缀</p>", True)])
def test_the_chinese_font_comes_with_chinese_text_only(
    page: str, has_chinese: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "subset", lambda *_, **__: b"")
    assert ("Article Han" in fonts.face_rules(page, "en")) is has_chinese


def test_in_chinese_quotation_marks_come_from_the_chinese_font(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, set[str]] = {}

    def keep(file: object, characters: set[str], **_: object) -> bytes:
        asked[str(file).rsplit("/", 1)[-1]] = characters
        return b""

    monkeypatch.setattr(fonts, "subset", keep)
    fonts.face_rules("<p>“前缀”</p>", "zh")
    assert "“" in asked["NotoSerifSC-Regular.otf"] and "“" not in asked["source-serif-4-400-normal.woff2"]


def test_markup_styles_and_data_count_as_no_text() -> None:
    page = "<style>中</style><p title='文'>a&lt;b</p><annotation>\\frac</annotation>"
    assert set(fonts.visible_text(page)) - {" "} == set("a<b")
