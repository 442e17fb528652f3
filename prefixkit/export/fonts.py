"""Fonts: the used glyphs of each, as rules for the page; the folder of Chinese fonts for the PDF."""

from __future__ import annotations

import base64
import io
import re
from html import unescape
from importlib.util import find_spec
from pathlib import Path

from prefixkit.export.pandoc import ASSETS

FONTS = ASSETS / "fonts"
# (family, weight, style, file); the Chinese font is added when the page holds Chinese.
FACES = (
    ("Article Serif", 400, "normal", "source-serif-4-400-normal.woff2"),
    ("Article Serif", 400, "italic", "source-serif-4-400-italic.woff2"),
    ("Article Serif", 600, "normal", "source-serif-4-600-normal.woff2"),
    ("Article Sans", 400, "normal", "source-sans-3-400-normal.woff2"),
    ("Article Sans", 600, "normal", "source-sans-3-600-normal.woff2"),
    ("Article Math", 400, "normal", "stix-two-math.woff2"),
)
CHINESE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
# In Chinese text these stand in a full square, so the Latin fonts must not have them.
SQUARE_IN_CHINESE = frozenset("“”‘’…—·")
# MathML draws a lone letter of a formula from these blocks though the page holds the plain letter.
MATH_ITALIC = frozenset(map(chr, (0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C))))


def chinese_folder() -> Path | None:
    """Return the folder of the Noto SC fonts, None when their package is not installed."""
    spec = find_spec("pylopdf_fonts_zh_cn")
    return Path(spec.origin).parent if spec and spec.origin else None


def visible_text(page: str) -> str:
    """Return the characters that a page may show: its text without markup, style and embedded data."""
    body = re.sub(r"<(style|annotation)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", body))


def face_rules(page: str, lang: str) -> str:
    """Return @font-face rules that hold the glyphs which `page` uses."""
    used = set(visible_text(page)) | set("0123456789.…‘’“”—–•◦ \N{NO-BREAK SPACE}")
    latin = used - SQUARE_IN_CHINESE if lang == "zh" else used
    faces = [
        (family, weight, style, FONTS / file, latin | MATH_ITALIC if family == "Article Math" else latin)
        for family, weight, style, file in FACES
    ]
    folder = chinese_folder()
    wanted = {c for c in used if CHINESE.match(c)} | (used & SQUARE_IN_CHINESE if lang == "zh" else set())
    if folder and any(CHINESE.match(c) for c in wanted):
        faces.append(("Article Han", 400, "normal", folder / "NotoSerifSC-Regular.otf", wanted))
    return "".join(_rule(*face) for face in faces)


def _rule(family: str, weight: int, style: str, file: Path, characters: set[str]) -> str:
    data = base64.b64encode(subset(file, characters, keep_math=family == "Article Math")).decode("ascii")
    return (
        f'@font-face{{font-family:"{family}";font-weight:{weight};font-style:{style};'
        f"src:url(data:font/woff2;base64,{data}) format('woff2')}}\n"
    )


def subset(file: Path, characters: set[str], *, keep_math: bool = False) -> bytes:
    """Return a woff2 file with the glyphs of `characters`; the same input gives the same bytes."""
    from fontTools import subset as tool
    from fontTools.ttLib import TTFont

    options = tool.Options(hinting=False, notdef_outline=True)
    options.drop_tables += ["BASE", "VORG", "vhea", "vmtx"]  # for vertical setting
    options.layout_features = ["*"] if keep_math else ["kern", "liga", "mark", "mkmk", "ccmp", "locl", "tnum", "lnum"]
    font = TTFont(file, lazy=True, recalcTimestamp=False, recalcBBoxes=False)
    subsetter = tool.Subsetter(options)
    subsetter.populate(unicodes=[ord(c) for c in characters])
    subsetter.subset(font)
    font.flavor = "woff2"
    buffer = io.BytesIO()
    font.save(buffer)
    return buffer.getvalue()
