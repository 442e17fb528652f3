"""What both renderers start from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Source:
    """An article as pandoc Markdown; pictures lie in `folder`, or beside the notebook (`resources`)."""

    markdown: str
    folder: Path
    resources: tuple[Path, ...]
    lang: str
    bibliography: Path | None
    stamp: str
    timestamp: int | None
