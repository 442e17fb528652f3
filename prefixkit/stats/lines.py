"""`fit(records)`: both lines, what separates them, and every sentence that qualifies them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prefixkit.stats.cells import Cells, cell_difference, cells
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import Line, fit_line
from prefixkit.stats.notes import notes
from prefixkit.stats.ratio import reduction
from prefixkit.stats.rows import length_rows, make_rows, matched_lengths

LINES = {"on": ("on", "warm"), "off": ("off", "cold"), "control": ("on", "control"), "cold": ("on", "cold")}


@dataclass(frozen=True, slots=True)
class LengthSaving:
    """Off against on at one prompt length, as measured (no line involved)."""

    tokens: float
    off_ms: Estimate
    on_ms: Estimate
    saved_ms: Estimate
    reduction: Estimate


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The lines of all arms: `on` (warm), `off` (cold), `control` (salted on) and `cold` (first sends of arm on)."""

    on: Line
    off: Line
    control: Line
    cold: Line
    slope_reduction: Estimate
    slope_difference: Estimate
    intercept_difference: Estimate
    by_length: tuple[LengthSaving, ...]
    dropped: dict[str, dict[str, int]]
    notes: tuple[str, ...]

    @property
    def arms(self) -> dict[str, Line]:
        """Return the two lines that the article is about."""
        return {"on": self.on, "off": self.off}

    @property
    def status(self) -> str:
        """Return "ok" if both lines have intervals, else the first reason."""
        return next((line.status for line in (self.off, self.on) if line.status != "ok"), "ok")

    def to_dict(self) -> dict[str, Any]:
        """Return what `prefixkit fit --json` prints."""
        return {
            "arms": {name: line.to_dict() for name, line in self.arms.items()},
            "slope_reduction": {
                "value": self.slope_reduction.value,
                "ci": self.slope_reduction.ci,
                "status": self.slope_reduction.status,
                "note": self.slope_reduction.note,
            },
            "slope_difference": self.slope_difference.to_dict(),
            "intercept_difference": self.intercept_difference.to_dict(),
            "control": self.control.to_dict(),
            "by_length": [
                {"tokens": s.tokens, "off_ms": s.off_ms.to_dict(), "on_ms": s.on_ms.to_dict(),
                 "saved_ms": s.saved_ms.to_dict(), "reduction": s.reduction.to_dict()}
                for s in self.by_length
            ],
            "dropped": self.dropped,
            "notes": list(self.notes),
        }  # fmt: skip

    def table(self) -> list[tuple[str, str, str, str, str]]:
        """Return rows (line, requests, slope, intercept, R²) as text."""
        return [
            (name, f"{line.n}", str(line.slope), str(line.intercept), "" if line.r2 is None else f"{line.r2:.4f}")
            for name, line in (("off", self.off), ("on", self.on), ("control", self.control))
        ]

    def __repr__(self) -> str:
        rows = [HEADER, *self.table()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines += [f"{name}: {value}" for name, value in self._comparisons()]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in HEADER)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in self.table())
        below = "".join(f"<p>{html.escape(f'{name}: {value}')}</p>" for name, value in self._comparisons())
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}<ul>{notes}</ul>"

    def _comparisons(self) -> list[tuple[str, Estimate]]:
        return [
            ("Slope reduction", self.slope_reduction),
            ("Slope, off minus on", self.slope_difference),
            ("Intercept, off minus on", self.intercept_difference),
        ]


HEADER = ("line", "requests", "slope", "intercept", "R²")


def fit(records: Iterable[Mapping[str, Any]]) -> Fit:
    """Fit the lines of experiment `length` from record dicts; degenerate data give statuses, never an exception."""
    records = list(records)
    rows = length_rows(records)
    lines = {name: fit_line(rows.get(key, make_rows([])), *key) for name, key in LINES.items()}
    on, off = lines["on"], lines["off"]
    dropped = {f"{arm} {phase}".strip(): r.dropped for (arm, phase), r in sorted(rows.items()) if r.dropped}
    used = set(LINES.values())
    unused = {f"{arm} {phase}": r.n for (arm, phase), r in sorted(rows.items()) if r.n and (arm, phase) not in used}
    return Fit(
        on=on, off=off, control=lines["control"], cold=lines["cold"],
        slope_reduction=slope_reduction(on, off),
        slope_difference=line_difference(off, on, None),
        intercept_difference=line_difference(off, on, 0.0),
        by_length=by_length(on, off),
        dropped=dropped,
        notes=tuple(notes(records, lines, dropped, unused)),
    )  # fmt: skip


def slope_reduction(on: Line, off: Line) -> Estimate:
    """Return `1 - slope_on/slope_off` with Fieller's interval."""
    n = on.n + off.n
    if on.slope.value is None or off.slope.value is None:
        lacking = off if off.slope.value is None else on
        return missing(lacking.status, lacking.note, n=n, unit="fraction")
    if not (on.has_interval and off.has_interval):
        lacking = off if not off.has_interval else on
        value = 1 - on.slope.value / off.slope.value if off.slope.value else None
        return missing(lacking.status, lacking.note, n=n, unit="fraction", value=value)
    found = reduction(on.slope_contrast(), off.slope_contrast(), n=n)
    if found.status != "ok" or (on.status == off.status == "ok"):
        return found
    note = off.note if off.status != "ok" else on.note
    return Estimate(found.value, found.low, found.high, n, found.unit, found.method, "single-repeat", note)


def line_difference(a: Line, b: Line, tokens: float | None) -> Estimate:
    """Return line `a` minus line `b`: of the means at `tokens`, or of the slopes for None."""
    unit = "ms/1k tokens" if tokens is None else "ms"
    n = a.n + b.n
    for line in (a, b):
        if not line.has_interval:
            return missing(line.status, line.note, n=n, unit=unit)
    first, second = (line.slope_contrast() if tokens is None else line.mean_contrast(tokens) for line in (a, b))
    difference = first.minus(second)
    status, note = "ok", ""
    if tokens == 0.0 and "curvature" in (a.intercept.status, b.intercept.status):
        status, note = "curvature", (a if a.intercept.status == "curvature" else b).intercept.note
    return difference.estimate(n=n, unit=unit, method=f"Satterthwaite t({difference.df:.1f})", status=status, note=note)


def by_length(on: Line, off: Line) -> tuple[LengthSaving, ...]:
    """Compare both arms at every prompt length that both measured (within 3 % or 8 tokens)."""
    ours, theirs = cells(on), cells(off)
    if ours is None or theirs is None:
        return ()
    return tuple(_length_saving(tokens, ours, j, theirs, i) for i, j, tokens in matched_lengths(theirs.rows, ours.rows))


def _length_saving(tokens: float, on: Cells, j: int, off: Cells, i: int) -> LengthSaving:
    a, b = on.contrast(j), off.contrast(i)
    on_ms, off_ms = on.estimate(j), off.estimate(i)
    n = on_ms.n + off_ms.n
    saved = cell_difference(b, a, n)
    if a is not None and b is not None:
        return LengthSaving(tokens, off_ms, on_ms, saved, reduction(a, b, n=n))
    assert on_ms.value is not None and off_ms.value is not None
    ratio = missing(saved.status, saved.note, n=n, unit="fraction", value=1 - on_ms.value / off_ms.value)
    saved = missing(saved.status, saved.note, n=n, unit="ms", value=off_ms.value - on_ms.value)
    return LengthSaving(tokens, off_ms, on_ms, saved, ratio)
