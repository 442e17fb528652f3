"""Least squares on statsmodels, with intervals that hold for few repeats and for noise that grows with length.

Variances are HC2; their degrees of freedom are Satterthwaite's, taken under a noise whose standard deviation is a
straight line in the prompt length (Bell & McCaffrey 2002 with that working model instead of equal variances).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from statsmodels.regression.linear_model import OLS

from prefixkit.stats.estimate import LEVEL, Estimate, missing
from prefixkit.stats.rows import Floats

CLASSICAL_BELOW = 6
EXACT = 1e-18


def t_quantile(df: float | Floats) -> Floats:
    """Return the two-sided 95 % quantile of t."""
    return np.asarray(special.stdtrit(df, (1 + LEVEL) / 2))


@dataclass(frozen=True, slots=True)
class Contrast:
    """A linear combination of coefficients: value, variance and degrees of freedom."""

    value: float
    variance: float
    df: float

    @property
    def half_width(self) -> float:
        """Return half the width of the interval."""
        return float(t_quantile(self.df) * np.sqrt(self.variance))

    def scaled(self, factor: float) -> Contrast:
        """Return the contrast times a factor."""
        return Contrast(self.value * factor, self.variance * factor**2, self.df)

    def minus(self, other: Contrast) -> Contrast:
        """Return the difference to an independent contrast; Satterthwaite's degrees of freedom."""
        return combine(self, other, 1.0, -1.0)

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p value of `value == null`."""
        return float(2 * special.stdtr(self.df, -abs(self.value - null) / np.sqrt(self.variance)))

    def estimate(self, *, n: int, unit: str = "", method: str = "", status: str = "ok", note: str = "") -> Estimate:
        """Return value and interval; without noise there is no interval, whatever `status` says."""
        half = self.half_width
        if not half > 1e-12 * abs(self.value):
            return missing("exact", note or "No noise to make an interval from.", n=n, unit=unit, value=self.value)
        return Estimate(self.value, self.value - half, self.value + half, n, unit, method, status, note)


def combine(a: Contrast, b: Contrast, fa: float, fb: float) -> Contrast:
    """Return `fa*a + fb*b` of independent contrasts."""
    va, vb = fa**2 * a.variance, fb**2 * b.variance
    total = va + vb
    df = total**2 / (va**2 / a.df + vb**2 / b.df) if total > 0 else min(a.df, b.df)
    return Contrast(fa * a.value + fb * b.value, total, float(df))


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """A fitted model with an intercept; `exact` where nothing but rounding is left, so that no interval can be made."""

    coefficients: Floats
    residuals: Floats
    leverage: Floats
    robust: bool
    exact: bool
    _design: Floats
    _centre: Floats
    _scale: Floats
    _inverse: Floats
    _working: Floats

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return len(self.residuals)

    @property
    def columns(self) -> int:
        """Return the number of columns beside the intercept."""
        return len(self.coefficients) - 1

    @property
    def df_residual(self) -> int:
        """Return rows minus coefficients."""
        return self.n - len(self.coefficients)

    @property
    def rss(self) -> float:
        """Return the sum of squared residuals."""
        return float(self.residuals @ self.residuals)

    @property
    def method(self) -> str:
        """Say how intervals are made."""
        return "OLS, HC2 with Satterthwaite t" if self.robust else f"OLS, classical t({self.df_residual})"

    def at(self, *columns: float) -> Contrast:
        """Return the fitted mean where the columns have these values."""
        return self._contrast(np.concatenate([[1.0], (np.array(columns) - self._centre) / self._scale]))

    def coefficient(self, column: int) -> Contrast:
        """Return the coefficient of a column (0 is the first after the intercept)."""
        c = np.zeros(self._design.shape[1])
        c[column + 1] = 1 / self._scale[column]
        return self._contrast(c)

    def combination(self, factors: dict[int, float]) -> Contrast:
        """Return a weighted sum of column coefficients."""
        c = np.zeros(self._design.shape[1])
        for column, factor in factors.items():
            c[column + 1] = factor / self._scale[column]
        return self._contrast(c)

    def difference(self, first: tuple[float, ...], second: tuple[float, ...], factor: float = 1.0) -> Contrast:
        """Return the fitted mean at `first` minus `factor` times that at `second`."""
        rows = [np.concatenate([[1.0], (np.array(r) - self._centre) / self._scale]) for r in (first, second)]
        return self._contrast(rows[0] - factor * rows[1])

    def many(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the fitted means at `rows` (k x columns) and half the widths of their pointwise intervals."""
        c = np.column_stack([np.ones(len(rows)), (rows - self._centre) / self._scale])
        means = c @ self.coefficients
        if not self.robust:
            half = [self._contrast(row).half_width for row in c]
            return means, np.array(half)
        g = (self._design @ self._inverse @ c.T) ** 2 / (1 - self.leverage)[:, None]
        variance = (self.residuals**2) @ g
        return means, t_quantile(self._satterthwaite(g)) * np.sqrt(variance)

    def _contrast(self, c: Floats) -> Contrast:
        value = float(c @ self.coefficients)
        if not self.robust:
            return Contrast(value, float(c @ self._inverse @ c) * self.rss / self.df_residual, float(self.df_residual))
        weights = self._design @ (self._inverse @ c)
        g = weights**2 / (1 - self.leverage)
        variance = float(g @ self.residuals**2)
        return Contrast(value, variance, float(self._satterthwaite(g[:, None])[0]))

    def _satterthwaite(self, g: Floats) -> Floats:
        """Return 2E²/Var of each quadratic form sum(g e²) under the working variances, without an n x n matrix."""
        x, s, omega = self._design, self._inverse, self._working
        k = s @ ((x * omega[:, None]).T @ x) @ s
        core = np.block([[k, -s], [-s, np.zeros_like(s)]])
        u = np.hstack([x, x * omega[:, None]])
        low_rank = np.einsum("ij,ij->i", u @ core, u)
        t = np.stack([core @ ((u * weight[:, None]).T @ u) for weight in g.T])
        expected = (omega + low_rank) @ g
        spread = (omega**2 + 2 * omega * low_rank) @ g**2 + np.einsum("kij,kji->k", t, t)
        df = np.divide(expected**2, spread, out=np.full(len(spread), np.inf), where=spread > 0)
        return np.asarray(np.clip(df, 1.0, self.df_residual))


def regress(
    y: Floats, columns: Floats, *, scale_by: Floats | None = None, groups: Floats | None = None, robust: bool = True
) -> Regression:
    """Fit `y` on an intercept and the columns of `columns` (n x k).

    Noise is taken as a straight line in `scale_by` (within each of `groups`) for the degrees of freedom only.
    Without enough rows, or where one row fixes a coefficient alone, variances are classical. The caller sees to full
    rank.
    """
    columns = np.asarray(columns, dtype=float).reshape(len(y), -1)
    centre = columns.mean(axis=0)
    scale = columns.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(y)), (columns - centre) / scale])
    fitted = OLS(np.asarray(y, dtype=float), design).fit(method="qr")
    inverse = np.asarray(fitted.normalized_cov_params)
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    residuals = np.asarray(fitted.resid)
    robust = robust and len(y) >= CLASSICAL_BELOW and bool(leverage.max() < 0.99)
    exact = float(residuals @ residuals) <= EXACT * float(np.square(y).sum())
    working = _working_variances(residuals, leverage, scale_by, groups) if robust else np.ones(len(y))
    return Regression(
        np.asarray(fitted.params), residuals, leverage, robust, exact, design, centre, scale, inverse, working
    )


def _working_variances(residuals: Floats, leverage: Floats, scale_by: Floats | None, groups: Floats | None) -> Floats:
    size = np.abs(residuals) / np.sqrt(1 - leverage)
    if scale_by is None or size.max() == 0:
        return np.ones(len(residuals))
    deviation = np.empty(len(size))
    labels = np.zeros(len(size)) if groups is None else groups
    for label in np.unique(labels):
        inside = labels == label
        x = scale_by[inside] - scale_by[inside].mean()
        mean = size[inside].mean()
        slope = (x @ size[inside]) / (x @ x) if x @ x > 0 else 0.0
        deviation[inside] = np.maximum(mean + slope * x, 0.2 * mean)
    if deviation.max() == 0:
        return np.ones(len(residuals))
    return np.asarray((np.maximum(deviation, 1e-6 * deviation.max()) / deviation.max()) ** 2)
