"""Schedules and races, without a clock."""

from __future__ import annotations

from itertools import pairwise

import pytest

from prefixkit.experiments.schedule import Arrival, fell_behind, first_arrivals, lateness_ms, poisson_starts


def test_poisson_starts_have_the_asked_rate_and_repeat() -> None:
    starts = poisson_starts(200.0, 20_000, seed=3)
    assert starts[0] == 0.0
    assert starts == sorted(starts)
    assert 20_000 / starts[-1] == pytest.approx(200, rel=0.03)
    gaps = [b - a for a, b in pairwise(starts)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
    assert spread / mean == pytest.approx(1, rel=0.05)
    assert poisson_starts(200.0, 5, seed=3) == starts[:5]
    assert poisson_starts(200.0, 5, seed=4) != starts[:5]


def test_requests_that_start_before_their_prefix_is_ready_raced_for_it() -> None:
    arrivals = [
        Arrival(0, 0.0, 0.0, 500.0),
        Arrival(0, 0.1, 0.1, 700.0),
        Arrival(1, 0.2, 0.2, 100.0),
        Arrival(0, 0.6, 0.6, 50.0),
        Arrival(1, 0.6, 0.6, 50.0),
    ]
    assert first_arrivals(arrivals) == [True, True, True, False, False]


def test_a_failed_request_makes_no_prefix_ready() -> None:
    assert first_arrivals([Arrival(0, 0, 0, None), Arrival(0, 1, 1, 80.0), Arrival(0, 2, 2, 8.0)]) == [
        True,
        True,
        False,
    ]


def test_a_schedule_that_was_kept_says_nothing_and_one_that_was_not_says_so() -> None:
    kept = lateness_ms([Arrival(0, i / 100, i / 100 + 0.0004, 1.0) for i in range(200)])
    assert fell_behind(kept) is None
    assert fell_behind([*kept[:-1], 400.0]) is None
    assert "3 of 200 requests started 5 ms or more late, the worst by 400 ms" in str(
        fell_behind([*kept[:-3], 9.0, 20.0, 400.0])
    )
