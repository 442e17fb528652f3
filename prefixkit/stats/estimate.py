"""What every statistic comes as: a value with its interval, or the sentence that says why there is none."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number with its 95 % interval; `status` is "ok" or a reason, which `note` spells out."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    unit: str = ""
    method: str = ""
    status: str = "ok"
    note: str = ""

    @property
    def ci(self) -> list[float] | None:
        """Return `[low, high]`, or None without an interval."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    @property
    def half_width(self) -> float | None:
        """Return half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def excludes(self, value: float) -> bool:
        """Tell whether the interval leaves `value` out; False without an interval."""
        return self.low is not None and self.high is not None and not self.low <= value <= self.high

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        if self.value is None:
            return self.note or self.status
        unit = f" {self.unit}" if self.unit and self.unit != "fraction" else ""
        if self.low is None or self.high is None:
            return f"{number(self.value, self.unit)}{unit} (no interval)"
        return f"{number(self.value, self.unit)} [{number(self.low, self.unit)}, {number(self.high, self.unit)}]{unit}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One test: its statistic and p value, what was decided, and the sentence that says so."""

    decision: str
    p: float | None = None
    statistic: float | None = None
    n: int = 0
    method: str = ""
    status: str = "ok"
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def number(value: float, unit: str = "") -> str:
    """Write a number for a table: fractions as percentages, others with four significant digits."""
    if unit == "fraction":
        return f"{100 * value:.1f} %"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 6)}f}"


def missing(status: str, note: str, *, n: int = 0, unit: str = "", value: float | None = None) -> Estimate:
    """Return an estimate without an interval, and the sentence that says why."""
    return Estimate(value, n=n, unit=unit, status=status, note=note)
