"""The sentences that qualify a fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prefixkit.records import SCHEMA
from prefixkit.stats.estimate import number
from prefixkit.stats.line import Line
from prefixkit.stats.rows import printable

QUESTION_TOKENS = 128


def notes(
    records: list[Mapping[str, Any]], lines: dict[str, Line], dropped: dict[str, dict[str, int]], unused: dict[str, int]
) -> Iterable[str]:
    """Yield the sentences that qualify a fit: statuses, drift, curvature, warm starts, labels, what was left out."""
    for name in ("off", "on", "control"):
        line = lines[name]
        if line.note and (name != "control" or line.n):
            yield f"{name}: {line.note}"
        if line.intercept.status == "curvature":
            yield f"{name}: the intercept of {number(line.intercept.value or 0.0)} ms is {line.intercept.note}"
        if len(line.outliers):
            yield f"{name}: {len(line.outliers)} of {line.n} requests lie far off the line (5 robust sd); they count."
        if line.drift.status == "confounded" or line.drift.excludes(0):
            yield f"{name}: {line.drift.note}"
    yield from _doubts(lines)
    yield from _nominal(lines)
    for key, reasons in dropped.items():
        said = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        yield f"left out of {key}: {said}."
    if unused:
        yield "In no line: " + ", ".join(f"{count} {name}" for name, count in unused.items()) + "."
    profiles = sorted({printable(r["profile"]) for r in records if r.get("profile")})
    if len(profiles) > 1:
        yield f"Records of several profiles are fitted together: {', '.join(profiles)}."
    newer = sorted({str(r["schema"]) for r in records if isinstance(r.get("schema"), int) and r["schema"] > SCHEMA})
    if newer:
        yield f"Records of schema {', '.join(newer)} are newer than this package reads (schema {SCHEMA})."


def _nominal(lines: dict[str, Line]) -> Iterable[str]:
    """Say where labels and real lengths part; the lines use the real ones (`prompt_tokens`)."""
    seen: dict[float, float] = {}
    for line in lines.values():
        if line.rows is None:
            continue
        target, tokens = line.rows.target, line.rows.tokens
        wrong = (tokens < 0.8 * target) | (tokens > 1.25 * target + QUESTION_TOKENS)
        seen |= dict(zip(target[wrong].tolist(), tokens[wrong].tolist(), strict=True))
    if seen:
        said = ", ".join(f"{target:,.0f} is {tokens:,.0f}" for target, tokens in sorted(seen.items()))
        yield f"Nominal lengths differ from prompt tokens ({said}); the lines use prompt tokens."


def _doubts(lines: dict[str, Line]) -> Iterable[str]:
    off, on, cold = lines["off"].rows, lines["on"].rows, lines["cold"].rows
    if cold is not None and cold.n and bool((cold.cached > 0).any()):
        yield f"on: {int((cold.cached > 0).sum())} of {cold.n} cold requests hit the cache: they were not cold."
    if off is not None and off.n and bool((off.cached > 0).any()):
        yield (
            f"off: {int((off.cached > 0).sum())} of {off.n} requests hit a cache: this arm was warm, or its cache on."
        )
    if on is not None and on.n and bool((on.cached == 0).any()):
        short = on.tokens[on.cached == 0].max()
        yield (
            f"on: {int((on.cached == 0).sum())} of {on.n} warm requests hit nothing (up to {short:,.0f} tokens): prefix"
            " shorter than a block, or evicted."
        )
    if on is not None and off is not None and on.n and off.n:
        low, high = max(on.tokens.min(), off.tokens.min()), min(on.tokens.max(), off.tokens.max())
        if (
            high < max(on.tokens.max(), off.tokens.max()) * 0.9
            or low > min(on.tokens.min(), off.tokens.min()) * 1.5 + 64
        ):
            yield f"The arms cover different lengths; both measured only {low:,.0f} to {high:,.0f} tokens."
