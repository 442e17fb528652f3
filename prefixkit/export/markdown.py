"""An executed notebook as one Markdown document for pandoc, with its figures as files."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from prefixkit.errors import RenderError
from prefixkit.export.checks import cell_name
from prefixkit.export.placeholders import CLAIMS_MIME, Claims, fill

LEFT_OUT = frozenset({"remove_cell", "remove-cell", "parameters", "injected-parameters"})
SHOWN_CODE = frozenset({"show_code", "show-code"})
IMAGES = {"image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpg"}
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
ATTACHMENT = re.compile(r"\]\(attachment:([^)\s]+)\)")


@dataclass(slots=True)
class Document:
    """Markdown and the files that it refers to."""

    markdown: str = ""
    files: dict[str, bytes] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the files into `folder`."""
        for name, data in self.files.items():
            (folder / name).write_bytes(data)


def compose(notebook: Any, claims: Claims, lang: str) -> Document:
    """Return the document; each cell is preceded by a marker that tells the filter its name and tags."""
    document = Document()
    parts: list[str] = []
    first = next((cell for cell in notebook.cells if not _left_out(cell)), None)
    if first is None or first.cell_type != "markdown" or not first.source.startswith("# "):
        raise RenderError("the notebook does not begin with a Markdown cell `# Title`", "add it as the first cell")
    for position, cell in enumerate(notebook.cells, 1):
        tags = set(cell.metadata.get("tags", []))
        if _left_out(cell):
            continue
        name = cell_name(position, cell)
        if cell.cell_type == "markdown":
            body = [_attached(fill(cell.source, claims, lang, name), cell, position, document)]
        else:
            body = [fence(cell.source, "python")] if tags & SHOWN_CODE else []
            body += [
                _output(output, f"cell{position}-{number}", name, document)
                for number, output in enumerate(cell.outputs, 1)
            ]
        if any(body):
            parts += [fence("\n".join([quote(name), *sorted(tags)]), "{=cell}"), *body]
    document.markdown = "\n\n".join(part for part in parts if part) + "\n"
    return document


def _left_out(cell: Any) -> bool:
    return cell.cell_type == "raw" or not LEFT_OUT.isdisjoint(cell.metadata.get("tags", []))


def fence(text: str, kind: str) -> str:
    """Return a fenced block that no line of `text` can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(4, longest + 1)
    return f"{marks} {kind}\n{text.strip(chr(10))}\n{marks}"


def _attached(source: str, cell: Any, position: int, document: Document) -> str:
    """Turn `attachment:` images into files."""

    def replace(match: re.Match[str]) -> str:
        bundle = cell.get("attachments", {}).get(match[1], {})
        for mime, suffix in IMAGES.items():
            if mime in bundle:
                name = f"cell{position}-attachment{len(document.files)}.{suffix}"
                data = bundle[mime]
                document.files[name] = data.encode() if suffix == "svg" else base64.b64decode(data)
                return f"]({name})"
        raise RenderError(f"{cell_name(position, cell)}: attachment {match[1]!r} is missing", "attach the image again")

    return ATTACHMENT.sub(replace, source)


def _output(output: Any, stem: str, name: str, document: Document) -> str:
    if output.output_type == "stream":
        return fence(_plain(output.text), "{.output}") if output.name == "stdout" else ""
    data = output.get("data", {})
    if CLAIMS_MIME in data:
        return ""
    details = output.metadata.get("prefixkit", {})
    if "text/markdown" in data:
        return str(data["text/markdown"])
    for mime, suffix in IMAGES.items():
        if mime in data:
            if not details.get("alt"):
                raise RenderError(f"{name}: a figure without alternative text", "display it with show(..., alt=...)")
            file = f"{stem}.{suffix}"
            document.files[file] = data[mime].encode() if suffix == "svg" else base64.b64decode(data[mime])
            return _shown("figure", f"![figure]({file})", details)
    if "text/html" in data:
        block = fence(data["text/html"], "{=html}")
        return _shown("table", block, details) if details else block
    if "text/latex" in data:
        return str(data["text/latex"])
    return fence(_plain(data["text/plain"]), "{.output}") if "text/plain" in data else ""


def _shown(kind: str, body: str, details: dict[str, str]) -> str:
    attributes = {"kind": kind, "label": details["label"], "alt": details.get("alt", ""), "caption": details["caption"]}
    shown = " ".join(f'{name}="{quote(value)}"' for name, value in attributes.items())
    return f"::::::: {{.show {shown}}}\n{body}\n\n:::::::"


def _plain(text: str) -> str:
    """Return what a terminal shows of `text`: no colours, of a progress bar its last state."""
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in ANSI.sub("", text).split("\n"))
