"""Certified values of NIST's Statistical Reference Datasets, and what the intervals are made of."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS

from prefixkit.stats import fit
from prefixkit.stats.regression import Contrast, combine, regress
from tests.stats.simulated import probe

CERTIFIED = 1e-8

# NIST StRD, Norris: (x, y)
NORRIS = np.array([
    (0.2, 0.1), (337.4, 338.8), (118.2, 118.1), (884.6, 888.0), (10.1, 9.2), (226.5, 228.1), (666.3, 668.5),
    (996.3, 998.5), (448.6, 449.1), (777.0, 778.9), (558.2, 559.2), (0.4, 0.3), (0.6, 0.1), (775.5, 778.1),
    (666.9, 668.8), (338.0, 339.3), (447.5, 448.9), (11.6, 10.8), (556.0, 557.7), (228.1, 228.3), (995.8, 998.0),
    (887.6, 888.8), (120.2, 119.6), (0.3, 0.3), (0.3, 0.6), (556.8, 557.6), (339.1, 339.3), (887.2, 888.0),
    (999.0, 998.5), (779.0, 778.9), (11.1, 10.2), (118.3, 117.6), (229.2, 228.9), (669.1, 668.4), (448.9, 449.2),
    (0.5, 0.2),
])  # fmt: skip

# NIST StRD, Longley: y, then GNP deflator, GNP, unemployed, armed forces, population, year
LONGLEY = np.array([
    (60323, 83.0, 234289, 2356, 1590, 107608, 1947), (61122, 88.5, 259426, 2325, 1456, 108632, 1948),
    (60171, 88.2, 258054, 3682, 1616, 109773, 1949), (61187, 89.5, 284599, 3351, 1650, 110929, 1950),
    (63221, 96.2, 328975, 2099, 3099, 112075, 1951), (63639, 98.1, 346999, 1932, 3594, 113270, 1952),
    (64989, 99.0, 365385, 1870, 3547, 115094, 1953), (63761, 100.0, 363112, 3578, 3350, 116219, 1954),
    (66019, 101.2, 397469, 2904, 3048, 117388, 1955), (67857, 104.6, 419180, 2822, 2857, 118734, 1956),
    (68169, 108.4, 442769, 2936, 2798, 120445, 1957), (66513, 110.8, 444546, 4681, 2637, 121950, 1958),
    (68655, 112.6, 482704, 3813, 2552, 123366, 1959), (69564, 114.2, 502601, 3931, 2514, 125368, 1960),
    (69331, 115.7, 518173, 4806, 2572, 127852, 1961), (70551, 116.9, 554894, 4007, 2827, 130081, 1962),
], dtype=float)  # fmt: skip


def test_norris_has_its_certified_values() -> None:
    model = regress(NORRIS[:, 1], NORRIS[:, :1], robust=False)
    level, slope = model.at(0.0), model.coefficient(0)
    assert level.value == pytest.approx(-0.262323073774029, rel=CERTIFIED)
    assert level.variance**0.5 == pytest.approx(0.232818234301152, rel=CERTIFIED)
    assert slope.value == pytest.approx(1.00211681802045, rel=CERTIFIED)
    assert slope.variance**0.5 == pytest.approx(0.429796848199937e-03, rel=CERTIFIED)
    assert (model.rss / model.df_residual) ** 0.5 == pytest.approx(0.884796396144373, rel=CERTIFIED)


def test_longley_has_its_certified_values() -> None:
    model = regress(LONGLEY[:, 0], LONGLEY[:, 1:], robust=False)
    certified = [
        (15.0618722713733, 84.9149257747669),
        (-0.358191792925910e-01, 0.334910077722432e-01),
        (-2.02022980381683, 0.488399681651699),
        (-1.03322686717359, 0.214274163161675),
        (-0.511041056535807e-01, 0.226073200069370),
        (1829.15146461355, 455.478499142212),
    ]
    for column, (value, error) in enumerate(certified):
        found = model.coefficient(column)
        assert found.value == pytest.approx(value, rel=CERTIFIED)
        assert found.variance**0.5 == pytest.approx(error, rel=CERTIFIED)
    level = model.at(*[0.0] * 6)
    assert level.value == pytest.approx(-3482258.63459582, rel=CERTIFIED)
    assert level.variance**0.5 == pytest.approx(890420.383607373, rel=CERTIFIED)
    assert (model.rss / model.df_residual) ** 0.5 == pytest.approx(304.854073561965, rel=CERTIFIED)


def test_fit_gives_norris_its_certified_line_and_r2() -> None:
    found = fit([probe("off", "cold", x, y) for x, y in NORRIS])
    assert found.off.slope.value == pytest.approx(1002.11681802045, rel=CERTIFIED)
    assert found.off.intercept.value == pytest.approx(-0.262323073774029, rel=CERTIFIED)
    assert found.off.r2 == pytest.approx(0.999993745883712, rel=CERTIFIED)


def test_variances_are_statsmodels_hc2() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 4000, 40)
    y = 30 + 0.2 * x + rng.normal(0, 0.01 * x)
    reference = OLS(y, np.column_stack([np.ones(40), x])).fit()
    model = regress(y, x[:, None], scale_by=x)
    assert model.coefficient(0).variance ** 0.5 == pytest.approx(reference.HC2_se[1], rel=1e-9)
    assert model.at(0.0).variance ** 0.5 == pytest.approx(reference.HC2_se[0], rel=1e-9)


def test_degrees_of_freedom_equal_the_n_by_n_formula() -> None:
    rng = np.random.default_rng(2)
    x = np.repeat([353.0, 681, 1337, 2649, 3961], 5)
    y = 30 + 0.2 * x + rng.normal(0, 0.01 * x)
    model = regress(y, x[:, None], scale_by=x)
    design = np.column_stack([np.ones(25), x])
    inverse = np.linalg.inv(design.T @ design)
    residual_maker = np.eye(25) - design @ inverse @ design.T
    g = (design @ inverse @ [0.0, 1.0]) ** 2 / np.diag(residual_maker)
    noise = residual_maker @ np.diag(model._working) @ residual_maker
    expected = (g @ np.diag(noise)) ** 2 / (g @ noise**2 @ g)
    assert model.coefficient(0).df == pytest.approx(expected, rel=1e-8)


def test_fewer_degrees_of_freedom_where_noise_sits_in_one_length() -> None:
    rng = np.random.default_rng(3)
    x = np.repeat([353.0, 681, 1337, 2649, 3961], 5)
    z = rng.normal(0, 1, 25)
    even = regress(30 + 0.2 * x + z, x[:, None], scale_by=x).coefficient(0)
    growing = regress(30 + 0.2 * x + z * x / 500, x[:, None], scale_by=x).coefficient(0)
    assert growing.df < even.df < 23


def test_pointwise_band_equals_single_predictions() -> None:
    rng = np.random.default_rng(4)
    x = rng.uniform(1, 4000, 30)
    model = regress(30 + 0.2 * x + rng.normal(0, 3, 30), x[:, None], scale_by=x)
    means, halves = model.many(np.array([[100.0], [2000.0]]))
    assert means[1] == pytest.approx(model.at(2000.0).value)
    assert halves[1] == pytest.approx(model.at(2000.0).half_width)


def test_a_sole_row_that_fixes_a_coefficient_makes_variances_classical() -> None:
    x = np.array([100.0] * 7 + [4000.0])
    y = np.array([1.0, 1.2, 0.9, 1.1, 1.0, 1.3, 0.8, 50.0])
    model = regress(y, x[:, None], scale_by=x)
    assert not model.robust
    assert model.coefficient(0).half_width > 0


def test_combined_contrasts_add_variances_and_satterthwaite_degrees() -> None:
    total = combine(Contrast(10, 4, 4), Contrast(3, 1, 9), 1.0, -1.0)
    assert (total.value, total.variance) == (7, 5)
    assert total.df == pytest.approx(25 / (16 / 4 + 1 / 9))
