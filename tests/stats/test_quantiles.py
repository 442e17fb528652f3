"""Quantiles with intervals, or not estimable."""

from __future__ import annotations

import numpy as np
import pytest

from prefixkit.stats import quantile, quantile_difference, quantiles


def test_too_few_values_for_a_tail_quantile_are_not_estimable() -> None:
    found = quantile([1.0] * 50, 0.99)
    assert found.status == "not-estimable"
    assert "needs at least 100 values" in found.note
    assert quantile([], 0.5).status == "not-estimable"


def test_a_value_without_interval_where_no_order_statistic_bounds_it() -> None:
    found = quantile(list(range(120)), 0.99)
    assert found.status == "no-interval"
    assert found.value is not None


def test_equal_values_have_no_interval_of_zero_width() -> None:
    found = quantile([5.0] * 40, 0.5)
    assert (found.status, found.ci) == ("constant", None)


def test_missing_values_are_not_counted() -> None:
    assert quantile([1.0, float("nan"), 2.0, 3.0], 0.5).n == 3


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_intervals_cover_the_true_quantile(q: float) -> None:
    rng = np.random.default_rng(6)
    hits = [not quantile(rng.exponential(1, 80), q).excludes(-np.log(1 - q)) for _ in range(400)]
    assert np.mean(hits) >= 0.93


def test_three_quantiles_by_name() -> None:
    assert list(quantiles(list(range(1000)))) == [0.5, 0.9, 0.99]


def test_the_difference_of_quantiles_has_an_interval() -> None:
    rng = np.random.default_rng(7)
    found = quantile_difference(rng.normal(300, 10, 60), rng.normal(100, 10, 60), 0.5)
    assert not found.excludes(200)
    assert found.half_width is not None
    assert found.half_width < 10
    assert quantile_difference([1.0], [2.0], 0.5).status != "ok"
