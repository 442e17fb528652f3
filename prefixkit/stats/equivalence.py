"""Equivalence: two one-sided tests against a stated relative margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from prefixkit.stats.estimate import Estimate, Verdict, missing
from prefixkit.stats.regression import Contrast, combine, t_quantile

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Equivalence:
    """A difference, the same relative to the reference, and whether it lies within the margin."""

    difference: Estimate
    relative: Estimate
    margin: float
    verdict: Verdict

    @property
    def decision(self) -> str:
        """Return "equivalent", "different", "undecided" or "not tested"."""
        return self.verdict.decision


def equivalence(
    value: Contrast | None, reference: Contrast | None, margin: float, *, n: int, unit: str, what: str, if_not: str
) -> Equivalence:
    """Test `|value - reference| <= margin * reference` at 5 %; both are independent, None where not estimable."""
    if value is None or reference is None or reference.value <= 0:
        note = f"{what}: too few differing values on one side to compare."
        empty = missing("not-estimable", note, n=n, unit=unit)
        relative = missing("not-estimable", note, n=n, unit="fraction")
        return Equivalence(empty, relative, margin, Verdict("not tested", n=n, status="not-estimable", note=note))
    difference = value.minus(reference)
    lower = combine(value, reference, 1.0, -(1 - margin))
    upper = combine(value, reference, 1.0, -(1 + margin))
    p_low = float(special.stdtr(lower.df, -lower.value / np.sqrt(lower.variance)))
    p_high = float(special.stdtr(upper.df, upper.value / np.sqrt(upper.variance)))
    p = max(p_low, p_high)
    interval = difference.estimate(n=n, unit=unit, method=f"Satterthwaite t({difference.df:.1f})")
    relative = _relative(value, reference, n)
    if p < ALPHA:
        decision, sentence = "equivalent", f"{what}: equal within {margin:.0%} ({relative}; p = {p:.2g})."
    elif abs(difference.value) > margin * reference.value and interval.excludes(0):
        decision, sentence = "different", f"{what}: {relative}, more than {margin:.0%}: {if_not}."
    else:
        decision = "undecided"
        sentence = f"{what}: {relative}: these data cannot tell whether it is within {margin:.0%}."
    return Equivalence(interval, relative, margin, Verdict(decision, p, difference.value, n, "TOST", note=sentence))


def _relative(value: Contrast, reference: Contrast, n: int) -> Estimate:
    """Return `value/reference - 1` with Fieller's interval."""
    rho = value.value / reference.value
    t2 = float(t_quantile(combine(value, reference, 1.0, -rho).df)) ** 2
    a = reference.value**2 - t2 * reference.variance
    root = (value.value * reference.value) ** 2 - a * (value.value**2 - t2 * value.variance)
    if a <= 0 or root < 0:
        return missing("not-estimable", "The reference is not distinguishable from zero.", n=n, unit="fraction")
    centre, half = value.value * reference.value / a, float(np.sqrt(root)) / a
    return Estimate(rho - 1, centre - half - 1, centre + half - 1, n, "fraction", "Fieller")
