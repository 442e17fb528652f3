"""Schedules and races, without a clock."""

from __future__ import annotations

from prefixkit.stats.schedule import Arrival, fell_behind, first_arrivals, lateness_ms


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
