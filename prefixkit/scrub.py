"""Take this machine's folders out of texts, and find keys in them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prefixkit import paths

PATTERNS = {
    "sk-...": re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}"),
    "hf_...": re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{20,}"),
    "a bearer token": re.compile(r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}"),
}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
KEY_VARIABLES = ("OPENAI_API_KEY", "TAOTOKEN_API_KEY", "VLLM_API_KEY", "HF_TOKEN")
NO_SECRETS = frozenset({"", "EMPTY", "none", "None", "dummy"})
SHORTEST_KEY = 6


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replace folders by what stands for them; a folder is found only as a whole path."""

    folders: tuple[tuple[str, str], ...]

    @classmethod
    def here(cls, extra: Mapping[str, str] | None = None) -> Scrubber:
        """Return one for this machine: `extra`, then the project root as `.`, then the home directory as `~`."""
        named = {**(extra or {}), str(paths.ROOT): ".", str(Path.home()): "~"}
        ordered = sorted(named.items(), key=lambda item: -len(item[0]))
        return cls(tuple((folder, short) for folder, short in ordered if folder.strip("/")))

    def __call__(self, text: str) -> str:
        """Return `text` without them."""
        for folder, short in self.folders:
            text = re.sub(rf"(?<![\w.~-]){re.escape(folder)}(?![\w-])", short, text)
        return text

    def log(self, text: str) -> str:
        """Return a log without them and without colours; processes glue their lines together, so any place counts."""
        text = COLOURS.sub("", text)
        for folder, short in self.folders:
            text = text.replace(f"{folder}/", f"{short}/")
        return self(text)


def find_key(text: str, variables: Iterable[str] = ()) -> str | None:
    """Return what kind of key `text` holds, or None: the value of a key variable, or what looks like a key."""
    for name in sorted({*variables, *KEY_VARIABLES}):
        value = os.environ.get(name, "").strip()
        if value in NO_SECRETS or len(value) < SHORTEST_KEY:
            continue
        if value in text or json.dumps(value)[1:-1] in text:
            return f"the value of {name}"
    return next((kind for kind, pattern in PATTERNS.items() if pattern.search(text)), None)
