"""The article as one HTML file."""

from __future__ import annotations

import base64
import re
from html import escape

from prefixkit.export import fonts
from prefixkit.export.checks import check_page
from prefixkit.export.pandoc import ASSETS, WORDS, convert
from prefixkit.export.source import Source

EMBEDDED_SVG = re.compile(r'src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"')


def render(source: Source) -> str:
    """Return the page, its pictures and the used glyphs of its fonts inside it."""
    page = convert(
        source.markdown,
        "html5",
        source.folder,
        lang=source.lang,
        bibliography=source.bibliography,
        variables={"stamp": escape(source.stamp)},
        options=[
            "--embed-resources",
            "--mathml",
            "--section-divs",
            "--syntax-highlighting=none",
            f"--template={ASSETS / 'article.html5'}",
        ],
        resources=source.resources,
    )
    page = EMBEDDED_SVG.sub(_as_text, page)
    page = _label_notes(page, WORDS[source.lang]["notes"])
    style = fonts.face_rules(page, source.lang) + (ASSETS / "article.css").read_text("utf-8")
    page = page.replace("</head>", f"<style>\n{style}</style>\n</head>", 1)
    check_page(page)
    return page


def _as_text(match: re.Match[str]) -> str:
    """Embed an SVG as escaped text, which is a quarter smaller than base64."""
    picture = " ".join(base64.b64decode(match[1]).decode("utf-8").split())
    for character in '%#"&':
        picture = picture.replace(character, f"%{ord(character):02X}")
    return f'src="data:image/svg+xml,{picture}"'


def _label_notes(page: str, word: str) -> str:
    return re.sub(r'(<section[^>]*role="doc-endnotes"[^>]*)>', rf'\1 aria-label="{word}">', page)
