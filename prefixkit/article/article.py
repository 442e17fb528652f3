"""The article as a notebook uses it: open a folder of records, then say, draw and tabulate section by section."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from IPython.display import Markdown, display

from prefixkit.article import (
    affinity,
    appendix,
    beside,
    blocks,
    ceiling,
    checks,
    client,
    cloud,
    control,
    conversation,
    counters,
    eviction,
    frontend,
    length,
    limit,
    mutation,
    output,
    parts,
    reference,
    rerun,
    summary,
    switch,
    under_load,
    workload,
)
from prefixkit.article.data import Data, load, resolve
from prefixkit.article.section import Context, Section
from prefixkit.claims import Claims
from prefixkit.export import carry_claims, show
from prefixkit.figures.style import save
from prefixkit.words import LANGUAGES, words

# In the order in which claims are made: a section may use the claims of those before it.
SECTIONS: Mapping[str, Section] = {
    "appendix": appendix.SECTION,
    "client": client.SECTION,
    "summary": summary.SECTION,
    "switch": switch.SECTION,
    "length": length.SECTION,
    "checks": checks.SECTION,
    "control": control.SECTION,
    "parts": parts.SECTION,
    "frontend": frontend.SECTION,
    "limit": limit.SECTION,
    "rerun": rerun.SECTION,
    "output": output.SECTION,
    "ceiling": ceiling.SECTION,
    "conversation": conversation.SECTION,
    "load": under_load.SECTION,
    "affinity": affinity.SECTION,
    "mutation": mutation.SECTION,
    "workload": workload.SECTION,
    "eviction": eviction.SECTION,
    "blocks": blocks.SECTION,
    "counters": counters.SECTION,
    "cloud": cloud.SECTION,
    "beside": beside.SECTION,
    "reference": reference.SECTION,
}


def compute(data: Data) -> Claims:
    """Return every claim of the article; a pure function of the records."""
    claims = Claims()
    for section in SECTIONS.values():
        section.claim(data, claims)
    return claims


def language(asked: str, data: Data) -> str:
    """Return the language asked for, else that of the notebook open in JupyterLab, else the one in the parameters."""
    if asked:
        return asked
    name = Path(os.environ.get("JPY_SESSION_NAME", "")).name.split(".")
    for lang in LANGUAGES:
        if lang in name[1:-1]:
            return lang
    return data.settings.lang


class Article:
    """One article under way: its claims are computed, its figures are saved as they are shown."""

    def __init__(self, data: Data, out: Path, lang: str) -> None:
        self.data, self.out = data, out
        self.claims = compute(data)
        self.context = Context(data, self.claims, words(lang))

    @classmethod
    def open(cls, data: str | Path, out: str | Path = "", lang: str = "", compare: str = "") -> Article:
        """Load the records of `data`, write claims.json to `out` (default: the same folder) and return the article.

        `compare` names the run to set beside this one (default: report.compare).
        """
        loaded = load(data)
        if compare:
            loaded = replace(loaded, settings=replace(loaded.settings, compare=compare))
        article = cls(loaded, resolve(out) if out else loaded.folder, language(lang, loaded))
        article.claims.write(article.out)
        carry_claims({name: claim.record() for name, claim in article.claims.items()})
        return article

    def say(self, name: str) -> None:
        """Display the sentences of a section that depend on the data."""
        if text := _find("sentences", name)(self.context):
            display(Markdown(text))  # type: ignore[no-untyped-call]

    def figure(self, name: str) -> None:
        """Save a figure as SVG, PNG and CSV and show it; nothing where its data were not measured."""
        picture = _find("figures", name)(self.context)
        if picture is None:
            return
        save(picture, self.out / "figures", name)
        show(
            picture.figure,
            label=f"fig-{name}",
            caption=self.context.say(f"figure.{name}.caption"),
            alt=self.context.say(f"figure.{name}.alt"),
        )

    def table(self, name: str) -> None:
        """Show a table; nothing where its data were not measured."""
        table = _find("tables", name)(self.context)
        if table is None:
            return
        caption = self.context.say(f"table.{name}.caption")
        show(table.frame(self.context.words), label=f"tbl-{name}", caption=caption, alt=caption)


def _find(kind: str, name: str) -> Any:
    for section in SECTIONS.values():
        if name in (found := getattr(section, kind)):
            return found[name]
    known = ", ".join(n for section in SECTIONS.values() for n in getattr(section, kind))
    raise KeyError(f"no {kind} called {name!r}; there are: {known}")
