"""Working sets and the order in which they are visited."""

from __future__ import annotations

from collections import Counter

from prefixkit.experiments.orders import order, prompts_for


def test_a_working_set_counts_whole_blocks() -> None:
    assert prompts_for(1.0, 6400, 640, 32) == 10
    assert prompts_for(1.0, 6400, 641, 32) == round(6400 / 672)
    assert prompts_for(0.01, 6400, 640, 32) == 2


def test_each_order_visits_as_often_and_repeats_itself() -> None:
    assert order("cyclic", 3, 2, 0) == [0, 1, 2, 0, 1, 2]
    for kind in ("random", "skewed"):
        visits = order(kind, 20, 50, 1)
        assert len(visits) == 1000
        assert set(visits) <= set(range(20))
        assert visits == order(kind, 20, 50, 1)
        assert visits != order(kind, 20, 50, 2)


def test_a_skewed_order_prefers_a_few() -> None:
    visits = Counter(order("skewed", 20, 50, 1))
    assert visits[0] > 4 * visits[19]
    assert sum(visits[n] for n in range(4)) > 500
