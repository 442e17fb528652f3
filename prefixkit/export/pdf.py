"""The article as one PDF file, set by Typst from a wheel."""

from __future__ import annotations

from typing import Final

from prefixkit.errors import RenderError
from prefixkit.export.fonts import chinese_folder
from prefixkit.export.pandoc import ASSETS, convert
from prefixkit.export.source import Source

STANDARD: Final = "ua-1"


def render(source: Source) -> bytes:
    """Return the bytes of a tagged PDF/UA-1 file; RenderError when Typst is missing or refuses."""
    try:
        import typst
    except ImportError:
        raise RenderError("the PDF needs typst, which is missing", "`make setup`, or pip install typst") from None
    text = convert(
        source.markdown,
        "typst",
        source.folder,
        lang=source.lang,
        bibliography=source.bibliography,
        variables={
            "typst-lang": source.lang,
            "stamp": _string(source.stamp),
            "dated": "auto" if source.timestamp is not None else "none",
        },
        options=["--syntax-highlighting=idiomatic", "--wrap=none", f"--template={ASSETS / 'article.typ'}"],
        resources=source.resources,
    )
    file = source.folder / "article.typ"
    file.write_text(text, "utf-8")
    chinese = chinese_folder()
    try:
        return bytes(
            typst.compile(
                str(file),
                root=str(source.folder),
                font_paths=[str(chinese)] if chinese else [],
                ignore_system_fonts=True,
                pdf_standards=[STANDARD],
                timestamp=source.timestamp,
            )
        )
    except typst.TypstError as error:
        details = [error.message, *getattr(error, "hints", [])]
        raise RenderError(f"the PDF could not be set: {'; '.join(map(str, details))}", "mend the notebook") from None


def _string(text: str) -> str:
    """Return a Typst string literal."""
    return '"' + " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"') + '"'
