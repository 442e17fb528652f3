"""One catalogue of words per language: labels of figures, heads of tables, sentences with places for claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from prefixkit import paths
from prefixkit.claims import Claim, text

LANGUAGES = ("en", "zh")
_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")


@dataclass(frozen=True, slots=True)
class Words:
    """The catalogue of one language."""

    lang: str
    entries: Mapping[str, str]

    def __call__(self, key: str) -> str:
        """Return the entry `key`; a key that is not in the catalogue is a fault of the project."""
        return self.entries[key]

    def say(self, key: str, claims: Mapping[str, Claim] | None = None, **values: str) -> str:
        """Return the entry with each `{name}` or `{name:form}` filled from `values` or from the claims."""

        def fill(match: re.Match[str]) -> str:
            name, form = match.group(1), match.group(2) or ""
            if name in values:
                return values[name]
            return text((claims or {})[name], self.lang, form)

        return _SLOT.sub(fill, self.entries[key])

    def arm(self, name: str) -> str:
        """Return what an arm is called."""
        return self.entries.get(f"arm.{name}", name)


def slots(entry: str) -> set[str]:
    """Return the names that an entry has places for."""
    return {name for name, _ in _SLOT.findall(entry)}


@cache
def words(lang: str) -> Words:
    """Return the catalogue of a language, `en` or `zh`."""
    if lang not in LANGUAGES:
        raise ValueError(f"no words for language {lang!r}")
    tree = yaml.safe_load((paths.DATA / f"words.{lang}.yaml").read_text("utf-8"))
    return Words(lang, dict(_flat(tree)))


def _flat(node: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for key, value in node.items():
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append((f"{prefix}{key}", str(value).strip()))
    return pairs
