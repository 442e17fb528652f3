"""Matplotlib figures as small SVG files that are the same from the same figure."""

from __future__ import annotations

import io
import re
from itertools import count
from typing import Any

COORDINATES = re.compile(r"""(?<=[ \n])(?:d|x|y|points)="[^"]*"|translate\([^)]*\)""")
LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
HEAD = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)
ID = re.compile(r' id="([^"]*)"')
REFERENCE = re.compile(r'(?<=href="#)[^"]+|(?<=url\(#)[^)]+')
GLYPH = re.compile(r'd="([^"]*)"\s+transform="scale\(0\.015625\)"')
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
COMMAND = re.compile(r" ?([A-Za-z]) ?")
MOVED_GLYPH = re.compile(r'(<use [^>]*?)transform="translate\((\S+) (\S+)\)"/>')


def draw(figure: Any, salt: str) -> str:
    """Return a figure as SVG, its letters as shapes; `salt` keeps the ids of different figures apart."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return compact(buffer.getvalue().decode("utf-8"))


def compact(picture: str) -> str:
    """Return an SVG half as long: coordinates to a hundredth of a point, short ids, no metadata, on one line."""
    flat = re.sub(r"\s*\n\s*", "\n", HEAD.sub("", picture)).strip()
    flat = GLYPH.sub(_coarser, flat)
    flat = COORDINATES.sub(_shorter, flat)
    flat = MOVED_GLYPH.sub(_placed, flat)
    short = {name: f"i{number}" for number, name in zip(count(), dict.fromkeys(REFERENCE.findall(flat)))}
    flat = ID.sub(lambda found: f' id="{short[found[1]]}"' if found[1] in short else "", flat)
    flat = " ".join(REFERENCE.sub(lambda found: short[found[0]], flat).replace(">\n<", "><").split())
    return flat if "'" in flat else flat.replace('"', "'")  # which neither a page nor a notebook has to escape


def _coarser(glyph: re.Match[str]) -> str:
    """Draw a letter on a grid of 640 steps to its height instead of 6400."""
    outline = NUMBER.sub(lambda number: f"{float(number[0]) / 10:.0f}", glyph[1])
    return f'd="{outline}" transform="scale(0.15625)"'


def _shorter(part: re.Match[str]) -> str:
    rounded = LONG_NUMBER.sub(_rounded, part[0])
    if not rounded.startswith("d="):
        return rounded
    outline = COMMAND.sub(r"\1", " ".join(rounded[3:-1].split()))
    return f'd="{outline}"'


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _placed(glyph: re.Match[str]) -> str:
    x, y = (f' {name}="{value}"' if float(value) else "" for name, value in (("x", glyph[2]), ("y", glyph[3])))
    return f"{glyph[1].rstrip()}{x}{y}/>"
