"""Ratios, differences of means, and equivalence."""

from __future__ import annotations

import numpy as np
import pytest

from prefixkit.stats import Estimate, equivalence, mean_estimate, paired_reduction
from prefixkit.stats.ratio import mean_contrast, reduction
from prefixkit.stats.regression import Contrast


def test_a_reduction_without_uncertainty_below_is_the_delta_interval() -> None:
    found = reduction(Contrast(50, 4, 20), Contrast(100, 1e-9, 20), n=10)
    assert found.value == pytest.approx(0.5)
    assert found.half_width == pytest.approx(2.086 * 0.02, rel=1e-3)


def test_a_reduction_of_something_like_zero_has_no_bounds() -> None:
    found = reduction(Contrast(50, 4, 20), Contrast(1, 4, 20), n=10)
    assert found.status == "not-estimable"
    assert found.ci is None


def test_pairs_that_share_drift_are_narrower_than_their_spread() -> None:
    drift = np.linspace(1, 2, 8)
    noise = np.random.default_rng(8).normal(0, 0.5, 8)
    found = paired_reduction(30 * drift + noise, 100 * drift)
    assert found.value == pytest.approx(0.7, abs=0.01)
    assert (found.half_width or 1) < 0.01


def test_single_and_equal_values_have_no_interval() -> None:
    assert paired_reduction(np.array([1.0]), np.array([2.0])).status == "single-repeat"
    assert paired_reduction(np.array([1.0, 1.0]), np.array([2.0, 3.0])).status == "constant"
    assert mean_estimate(np.array([3.0, 3.0])).ci is None


def test_a_difference_of_independent_means_agrees_with_scipy() -> None:
    from scipy import stats

    a, b = np.array([1.0, 2, 3, 4.5]), np.array([2.0, 2.5, 9])
    first, second = mean_contrast(a), mean_contrast(b)
    assert first is not None and second is not None
    interval = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert first.minus(second).estimate(n=7).ci == pytest.approx([interval.low, interval.high])


@pytest.mark.parametrize(
    ("value", "decision"),
    [
        (Contrast(101, 0.5, 20), "equivalent"),
        (Contrast(120, 0.5, 20), "different"),
        (Contrast(104, 9, 20), "undecided"),
    ],
)
def test_equivalence_decides_by_margin_and_noise(value: Contrast, decision: str) -> None:
    found = equivalence(value, Contrast(100, 0.5, 20), 0.05, n=40, unit="ms", what="A against B", if_not="they differ")
    assert found.decision == decision
    assert found.verdict.note.startswith("A against B")


def test_an_estimate_prints_itself_with_its_interval() -> None:
    assert str(Estimate(0.967, 0.957, 0.976, 10, "fraction")) == "96.7 % [95.7 %, 97.6 %]"
    assert str(Estimate(207.6, 190.9, 224.3, 5, "ms/1k tokens")) == "207.6 [190.9, 224.3] ms/1k tokens"
    assert str(Estimate(None, status="empty", note="No values.")) == "No values."
    assert "no interval" in str(Estimate(3.0, unit="ms"))
