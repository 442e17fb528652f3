"""Ratios and differences of means and coefficients, with intervals."""

from __future__ import annotations

import numpy as np

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.regression import Contrast, combine, t_quantile
from prefixkit.stats.rows import Floats


def mean_contrast(values: Floats) -> Contrast | None:
    """Return the mean of at least two differing values, or None."""
    if len(values) < 2 or np.ptp(values) == 0:
        return None
    return Contrast(float(values.mean()), float(values.var(ddof=1)) / len(values), float(len(values) - 1))


def reduction(
    on: Contrast, off: Contrast, *, n: int, covariance: float = 0.0, df: float | None = None, method: str = ""
) -> Estimate:
    """Return `1 - on/off` as a fraction with Fieller's interval; pass covariance and df where both share errors."""
    if off.value == 0:
        return missing("not-estimable", "The off value is zero: no ratio.", n=n, unit="fraction")
    rho = on.value / off.value
    if df is None:
        df = combine(on, off, 1.0, -rho).df
    t2 = float(t_quantile(df)) ** 2
    a = off.value**2 - t2 * off.variance
    b = on.value * off.value - t2 * covariance
    c = on.value**2 - t2 * on.variance
    root = b * b - a * c
    if a <= 0 or root <= 0:
        note = "The off value is not distinguishable from zero: the ratio has no bounded interval."
        return missing("not-estimable", note, n=n, unit="fraction", value=1 - rho)
    low, high = 1 - (b + np.sqrt(root)) / a, 1 - (b - np.sqrt(root)) / a
    return Estimate(1 - rho, float(low), float(high), n, "fraction", method or f"Fieller, t({df:.1f})")


def paired_reduction(on: Floats, off: Floats) -> Estimate:
    """Return `1 - mean(on)/mean(off)` of values that were measured in pairs and so share drift."""
    keep = ~(np.isnan(on) | np.isnan(off))
    on, off = on[keep], off[keep]
    n = len(on)
    if n < 2:
        return missing("single-repeat", f"{n} pairs: no interval.", n=n, unit="fraction",
                       value=float(1 - on.mean() / off.mean()) if n else None)  # fmt: skip
    a, b = mean_contrast(on), mean_contrast(off)
    if a is None or b is None:
        value = float(1 - on.mean() / off.mean())
        return missing(
            "constant", "Equal values: no noise to make an interval from.", n=n, unit="fraction", value=value
        )
    shared = float(np.cov(on, off)[0, 1]) / n
    return reduction(a, b, n=n, covariance=shared, df=n - 1.0, method=f"Fieller of {n} pairs, t({n - 1})")


def mean_estimate(values: Floats, unit: str = "ms") -> Estimate:
    """Return the mean with a t interval."""
    if not len(values):
        return missing("empty", "No values.", unit=unit)
    found = mean_contrast(values)
    if found is None:
        status = "single-repeat" if len(values) == 1 else "constant"
        note = "One value: no interval." if len(values) == 1 else "Equal values: no noise to make an interval from."
        return missing(status, note, n=len(values), unit=unit, value=float(values.mean()))
    return found.estimate(n=len(values), unit=unit, method=f"t({len(values) - 1})")
