"""Fill `{{ claim }}` placeholders in Markdown from claims.json."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixkit import paths
from prefixkit.errors import RenderError
from prefixkit.export.show import literal

CLAIMS_MIME = "application/vnd.prefixkit.claims+json"
Claims = Mapping[str, Mapping[str, Any]]

PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
NAME = re.compile(r"\s*([A-Za-z_]\w*)(?:\.(value|ci|full|low|high|abs))?\s*")
PARTS = ("value", "ci", "full", "low", "high", "abs")
MISSING = {"en": "not measured", "zh": "未测量"}
INTERVAL = {"en": "95% CI {} to {}", "zh": "95% 置信区间 {} 至 {}"}
FRACTIONS = ("fraction", "ratio")
BARE = ("", "count", "1", "text")
UNITS = {
    "en": {
        "ms_per_1k": "ms per 1,000 tokens",
        "ms/1k": "ms per 1,000 tokens",
        "ms/1k tokens": "ms per 1,000 tokens",
        "tokens_per_s": "tokens/s",
    },
    "zh": {
        "ms_per_1k": "毫秒/千 token",
        "ms/1k": "毫秒/千 token",
        "ms/1k tokens": "毫秒/千 token",
        "tokens_per_s": "token/秒",
        "ms": "毫秒",
        "s": "秒",
        "tokens": "token",
    },
}


def number(value: float, unit: str = "") -> str:
    """Return a number as the article prints it: three significant digits, thousands separated, a true minus sign."""
    if unit in FRACTIONS:
        value *= 100
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 100):
        text = f"{round(value):,}"
    elif unit in FRACTIONS:
        text = f"{value:.1f}"
    elif value == 0 or not math.isfinite(value):
        text = f"{value:g}"
    else:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{digits}f}"
    if not any(digit in text for digit in "123456789"):  # a negative number that rounds to zero
        text = text.lstrip("-")
    return text.replace("-", "−")


def _with_unit(text: str, unit: str, lang: str) -> str:
    if unit in FRACTIONS or unit == "%":
        return f"{text}%"
    if unit in BARE:
        return text
    if unit in ("x", "×", "times"):
        return f"{text}×"
    return f"{text}\N{NO-BREAK SPACE}{UNITS[lang].get(unit, unit)}"


def claim_text(claim: Mapping[str, Any], part: str | None = None, lang: str = "en") -> str:
    """Return one claim as Markdown; a value of None reads "not measured"."""
    value, unit, interval = claim.get("value"), str(claim.get("unit") or ""), claim.get("ci")
    if value is None:
        return MISSING[lang]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return literal(str(value))
    if part in ("ci", "low", "high", "full"):
        if not interval or any(end is None for end in interval):
            return _with_unit(number(value, unit), unit, lang) if part == "full" else MISSING[lang]
        low, high = (number(end, unit) for end in interval)
        if part in ("low", "high"):
            return _with_unit(low if part == "low" else high, unit, lang)
        percent = "%" if unit in FRACTIONS else ""
        if part == "full":
            span = INTERVAL[lang].format(low + percent, high + percent)
            return f"{_with_unit(number(value, unit), unit, lang)} ({span})"
        return INTERVAL[lang].format(low + percent, _with_unit(high, unit, lang))
    text = number(abs(value) if part == "abs" else value, unit)
    return text if part == "value" else _with_unit(text, unit, lang)


def fill(markdown: str, claims: Claims, lang: str, cell: str) -> str:
    """Return `markdown` with every placeholder filled; RenderError names the cell of one that cannot be."""

    def replace(match: re.Match[str]) -> str:
        parsed = NAME.fullmatch(match[1])
        if not parsed:
            raise RenderError(
                f"{cell}: {match[0]!r} is not a placeholder",
                f"write {{{{ name }}}} or {{{{ name.{'|'.join(PARTS)} }}}}",
            )
        name, part = parsed.groups()
        if name not in claims:
            near = difflib.get_close_matches(name, list(claims), n=3)
            raise RenderError(
                f"{cell}: unknown claim {name!r}",
                f"did you mean {', '.join(near)}?" if near else "see claims.json for the names",
            )
        return claim_text(claims[name], part, lang)

    return PLACEHOLDER.sub(replace, markdown)


def find_claims(notebook: Any, folder: str | Path | None) -> dict[str, Any]:
    """Return the claims of an executed notebook: from its data folder, from beside it, or carried in its outputs."""
    parameters = notebook.metadata.get("papermill", {}).get("parameters", {})
    folders = [paths.ROOT / parameters[name] for name in ("out", "data") if parameters.get(name)]
    folders += [Path(folder)] if folder is not None else []
    for candidate in folders:
        if (path := candidate / "claims.json").is_file():
            return read_claims(path)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if CLAIMS_MIME in output.get("data", {}):
                return dict(output["data"][CLAIMS_MIME])
    return {}


def read_claims(path: Path) -> dict[str, Any]:
    """Return a claims file's content; RenderError when it is not one."""
    try:
        claims = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RenderError(f"{path}: not a claims file ({error})", "run the report notebook again") from None
    if not isinstance(claims, dict) or not all(isinstance(claim, dict) for claim in claims.values()):
        raise RenderError(f"{path}: not a mapping of names to claims", "run the report notebook again")
    return claims


def carry_claims(claims: Claims) -> None:
    """Let the executed notebook carry its claims, so that it can be exported without its data folder."""
    from IPython.display import display

    display({CLAIMS_MIME: claims, "text/plain": f"{len(claims)} claims"}, raw=True)  # type: ignore[no-untyped-call]


def preview(data: str | Path, notebook: str | Path | None = None) -> None:
    """Show the Markdown cells of `notebook` (default: the one open in JupyterLab) filled from `data`/claims.json."""
    import nbformat
    from IPython.display import Markdown, display

    source = notebook or os.environ.get("JPY_SESSION_NAME")
    if not source:
        raise RenderError("no notebook to preview", "pass `notebook`, its path")
    opened = nbformat.read(Path(source), as_version=4)  # type: ignore[no-untyped-call]
    lang = language(opened)
    claims = read_claims(paths.ROOT / data / "claims.json")
    texts = [
        fill(cell.source, claims, lang, f"cell {position}")
        for position, cell in enumerate(opened.cells, 1)
        if cell.cell_type == "markdown"
    ]
    display(Markdown("\n\n".join(texts)))  # type: ignore[no-untyped-call]


def language(notebook: Any) -> str:
    """Return the article's language, `en` or `zh`, from the notebook's metadata."""
    lang = str(notebook.metadata.get("prefixkit", {}).get("lang", "en"))
    if lang not in MISSING:
        raise RenderError(f"metadata prefixkit.lang is {lang!r}", "one of: en, zh")
    return lang
