"""What must not be published: half-run notebooks, and pages that run or load anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from prefixkit.errors import RenderError

RERUN = "restart the kernel and run all cells"
ACTIVE = frozenset({"script", "iframe", "object", "embed", "base", "form", "video", "audio", "frame", "applet"})
SOURCES = frozenset({"src", "srcset", "poster", "data", "background", "action", "formaction", "xlink:href"})
REMOTE_CSS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?!data:|#|['\"]?\))", re.IGNORECASE)


def cell_name(position: int, cell: Any) -> str:
    """Return how messages name a cell: its place, its id and how it begins."""
    first = next((line.strip() for line in cell.source.splitlines() if line.strip()), "empty")
    begin = first if len(first) <= 50 else first[:49] + "…"
    identity = f" [{cell['id']}]" if cell.get("id") else ""
    return f"cell {position}{identity} ({begin})"


def check_notebook(notebook: Any) -> None:
    """Raise RenderError, naming the cell, for an error output or for cells that did not run in order, once each."""
    expected = 1
    for position, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                raise RenderError(
                    f"{cell_name(position, cell)}: stopped with {output.ename}: {output.evalue}",
                    "mend it and run again",
                )
        if not cell.source.strip():
            continue
        if cell.execution_count != expected:
            found = "has not run" if cell.execution_count is None else f"ran as number {cell.execution_count}"
            raise RenderError(f"{cell_name(position, cell)}: {found}, not as number {expected}", RERUN)
        expected += 1


def drop_broken_widgets(notebook: Any) -> None:
    """Drop widget metadata without a state, which some tools save and nbconvert trips over."""
    widgets = notebook.metadata.get("widgets")
    if widgets is not None and not all(isinstance(w, dict) and "state" in w for w in widgets.values()):
        del notebook.metadata["widgets"]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._style = tag == "style"
        if tag in ACTIVE:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            target = (value or "").strip()
            loads = name in SOURCES or (name == "href" and tag not in ("a", "area"))
            if name.startswith("on"):
                self.faults.append(f"<{tag} {name}>")
            elif loads and not target.startswith(("data:", "#")):
                self.faults.append(f"<{tag} {name}={target[:60]!r}>")
            elif name == "href" and re.match(r"\s*(javascript|data|vbscript):", target, re.IGNORECASE) and tag == "a":
                self.faults.append(f"<a href={target[:60]!r}>")
            elif name == "style" and REMOTE_CSS.search(target):
                self.faults.append(f"style of <{tag}>")
        if tag == "meta" and any(name == "http-equiv" for name, _ in attrs):
            self.faults.append("<meta http-equiv>")

    def handle_endtag(self, _tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style and (match := REMOTE_CSS.search(data)):
            self.faults.append(f"style sheet: {data[match.start() : match.start() + 60]!r}")


def check_page(html: str) -> None:
    """Raise RenderError when the finished page would run a script or ask anything of a network."""
    page = _Page()
    page.feed(html)
    page.close()
    if page.faults:
        raise RenderError(f"the page would run or load something: {page.faults[0]}", "take it out of the notebook")
