"""Cold against warm: medians and intervals, so that one slow request decides nothing."""

from __future__ import annotations

from prefixkit.metrics import latency_shift


def test_one_slow_first_request_is_no_speed_up() -> None:
    cold = [510.0] + [170.0 + n % 5 for n in range(29)]
    warm = [170.0 + n % 5 for n in range(30)]
    shift = latency_shift(cold, warm)
    assert not shift.distinguishable
    assert not shift.hit_like
    assert "not distinguishable" in str(shift)


def test_a_real_saving_has_an_interval_that_excludes_zero() -> None:
    shift = latency_shift([4000.0, 4100.0, 4050.0, 3990.0, 4020.0], [700.0, 690.0, 710.0, 720.0, 705.0])
    assert shift.distinguishable
    assert shift.hit_like
    assert shift.low_ms is not None
    assert shift.high_ms is not None
    assert shift.low_ms <= 3320 <= shift.high_ms


def test_equal_samples_hold_zero() -> None:
    same = [100.0, 120.0, 80.0, 110.0, 90.0, 105.0]
    shift = latency_shift(same, same)
    assert shift.low_ms is not None
    assert shift.high_ms is not None
    assert shift.low_ms <= 0 <= shift.high_ms


def test_an_empty_side_gives_no_number() -> None:
    assert latency_shift([], [1.0]).saved_ms is None
    assert not latency_shift([1.0], []).distinguishable
