"""Notebooks as a kernel would have left them, made without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat import NotebookNode, v4, write

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="160" viewBox="0 0 320 160">'
    '<path d="M10 150 L310 20" stroke="#0072b2" fill="none"/></svg>'
)


def markdown(source: str, *tags: str) -> NotebookNode:
    """Return a Markdown cell."""
    return v4.new_markdown_cell(source, metadata={"tags": list(tags)})


def code(source: str = "pass", *outputs: NotebookNode, tags: tuple[str, ...] = ()) -> NotebookNode:
    """Return a code cell with its outputs."""
    return v4.new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})


def stdout(text: str) -> NotebookNode:
    """Return what print() leaves."""
    return v4.new_output("stream", name="stdout", text=text)


def displayed(mime: str, data: Any, **details: str) -> NotebookNode:
    """Return what display() leaves, with the metadata of show()."""
    metadata = {"prefixkit": details} if details else {}
    return v4.new_output("display_data", data={mime: data, "text/plain": "an object"}, metadata=metadata)


def figure(label: str = "fig-line", caption: str = "A line.", alt: str = "A rising line") -> NotebookNode:
    """Return a figure as show() leaves it."""
    return displayed("image/svg+xml", SVG, label=label, caption=caption, alt=alt)


def table(html: str, label: str = "tbl-rows", caption: str = "Rows.") -> NotebookNode:
    """Return a table as show() leaves it."""
    return displayed("text/html", html, label=label, caption=caption, alt="")


def notebook(*cells: NotebookNode, lang: str = "en") -> NotebookNode:
    """Return a notebook whose code cells ran in order."""
    count = 0
    for cell in cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    metadata = {"prefixkit": {"lang": lang}, "language_info": {"name": "python"}}
    return v4.new_notebook(cells=list(cells), metadata=metadata)


def saved(book: NotebookNode, path: Path) -> str:
    """Write a notebook and return its path."""
    write(book, path)
    return str(path)
