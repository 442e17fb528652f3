"""Mean TTFT at each measured length, free of any line; the run-order trend is removed where the line removes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prefixkit.stats.adequacy import MAX_LENGTHS, length_dummies, order_terms
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import Line
from prefixkit.stats.ratio import mean_contrast, mean_estimate
from prefixkit.stats.regression import Contrast, Regression, combine, regress
from prefixkit.stats.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The means of one line's lengths."""

    rows: Rows
    trend: int
    model: Regression | None

    def contrast(self, index: int) -> Contrast | None:
        """Return one length's mean in the middle of the run; None with one request or equal values."""
        values = self.rows.ttft_ms[self.rows.length == index]
        plain = mean_contrast(values)
        if self.model is None or plain is None:
            return plain
        return self.model.at(*self._row([index]))

    def estimate(self, index: int) -> Estimate:
        """Return one length's mean as an estimate."""
        values = self.rows.ttft_ms[self.rows.length == index]
        found = self.contrast(index)
        if found is None or self.model is None:
            return mean_estimate(values)
        return found.estimate(n=len(values), unit="ms", method=f"{self.model.method}, run-order trend removed")

    def grand(self, indices: list[int]) -> Contrast | None:
        """Return the mean over these lengths, each weighing the same; None where one of them has no spread."""
        parts = [self.contrast(i) for i in indices]
        if not parts or None in parts:
            return None
        if self.model is not None:
            return self.model.at(*self._row(indices))
        total: Contrast | None = None
        for part in parts:
            assert part is not None
            total = part if total is None else combine(total, part, 1.0, 1.0)
        assert total is not None
        return total.scaled(1 / len(parts))

    def _row(self, indices: list[int]) -> list[float]:
        row = [0.0] * (self.rows.lengths - 1 + self.trend)
        for index in indices:
            if index:
                row[index - 1] = 1 / len(indices)
        return row


def cells(line: Line) -> Cells | None:
    """Return the cell means of a line's requests, None without requests."""
    rows = line.rows
    if rows is None or not rows.n:
        return None
    if not line.trend or rows.lengths > MAX_LENGTHS or rows.n <= rows.lengths + line.trend:
        return Cells(rows, 0, None)
    columns = np.column_stack([length_dummies(rows), order_terms(rows)])
    model = regress(rows.ttft_ms, columns, scale_by=rows.tokens)
    return Cells(rows, 0, None) if model.exact else Cells(rows, line.trend, model)


def cell_difference(a: Contrast | None, b: Contrast | None, n: int) -> Estimate:
    """Return mean `a` minus mean `b` in ms."""
    if a is None or b is None:
        return missing("single-repeat", "Sent once or equal values at this length: no interval.", n=n, unit="ms")
    gap = a.minus(b)
    return gap.estimate(n=n, unit="ms", method=f"Satterthwaite t({gap.df:.1f})")
