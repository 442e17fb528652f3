"""What a section is made of: claims from the records, then figures, tables and sentences from claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.claims import Claims, text
from prefixkit.export.placeholders import number
from prefixkit.figures.style import Picture
from prefixkit.records import Record
from prefixkit.words import Words

SMALLEST_P = 0.001
REASONS = {
    "switched off in the parameters": "switched_off",
    "measured on arm on only": "on_only",
    "the server has one engine, so every request has affinity to it": "one_engine",
}
UNSET = " is not set in this process"
NO_BREAK = "\u00a0"


@dataclass(frozen=True, slots=True)
class Context:
    """What figures, tables and sentences are made from."""

    data: Data
    claims: Claims
    words: Words

    def say(self, key: str, **values: str) -> str:
        """Return a sentence of the catalogue, filled from the claims and from `values`."""
        return self.words.say(key, self.claims, **values)

    def number(self, name: str) -> float | None:
        """Return the value of a claim, None where it was not measured or not made."""
        return self.claims.number(name)

    def has(self, *names: str) -> bool:
        """Tell whether all these claims were measured."""
        return all(name in self.claims and self.claims[name].value is not None for name in names)

    def cell(self, name: str) -> str:
        """Return a claim as a cell of a table, without its unit but with a per cent sign; nothing where not made."""
        claim = self.claims.get(name)
        if claim is None:
            return ""
        if claim.value is None or isinstance(claim.value, str):
            return str(claim.value) if claim.value is not None else "–"
        if claim.unit == "p" and claim.value < SMALLEST_P:
            return f"< {SMALLEST_P:g}"
        return text(claim, self.words.lang, "" if claim.unit == "fraction" else "value")

    def ci(self, name: str) -> str:
        """Return a claim with its interval in brackets, as a cell of a table; it breaks before the bracket."""
        claim = self.claims.get(name)
        if claim is None or claim.value is None or not claim.ci:
            return self.cell(name)
        low, high = (text(claim, self.words.lang, part) for part in ("low", "high"))
        if claim.unit != "fraction":
            low, high = (number(end, claim.unit) for end in claim.ci)
        brackets = f"({self.words.say('interval', low=low, high=high)})"
        return f"{self.cell(name)} {brackets.replace(' ', NO_BREAK)}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of ready texts; `heads` are keys of the catalogue, `raw` cells come from a server, prompt or file."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def frame(self, words: Words) -> pd.DataFrame:
        """Return the table with its heads in the article's language."""
        return pd.DataFrame(list(self.rows), columns=[words(f"head.{head}") for head in self.heads], dtype=str)

    def without_empty(self) -> Table:
        """Return the table without the columns in which no row has anything."""
        kept = [i for i in range(len(self.heads)) if any(row[i] not in ("", "–") for row in self.rows)]
        return Table(tuple(self.heads[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in self.rows))


Claimer = Callable[[Data, Claims], None]
Drawer = Callable[[Context], Picture | None]
Tabler = Callable[[Context], Table | None]
Sayer = Callable[[Context], str]


@dataclass(frozen=True, slots=True)
class Section:
    """One section: how its claims are made, and what shows them, by name."""

    claim: Claimer
    figures: Mapping[str, Drawer] = field(default_factory=dict)
    tables: Mapping[str, Tabler] = field(default_factory=dict)
    sentences: Mapping[str, Sayer] = field(default_factory=dict)


def reason(ctx: Context, record: Record) -> str:
    """Return why a record says that something was skipped, in the article's language where it is a known reason."""
    told = " ".join(str(record.get("reason")).split())
    if told in REASONS:
        return ctx.words(f"skip.{REASONS[told]}")
    name = told.removesuffix(UNSET)
    return ctx.say("skip.unset", name=name) if name != told and name.isidentifier() else told


def joined(*sentences: str) -> str:
    """Return the sentences that are not empty, as one paragraph."""
    return " ".join(s for s in sentences if s)
