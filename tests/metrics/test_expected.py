"""Block arithmetic."""

from __future__ import annotations

import doctest

import pytest

from prefixkit import expected_hits
from prefixkit.metrics import expected


def test_the_docstring_examples_hold() -> None:
    assert doctest.testmod(expected).failed == 0
    assert doctest.testmod(expected).attempted == 2


@pytest.mark.parametrize(
    ("shared", "total", "block", "hits"),
    [
        (64, 64, 16, 48),  # an identical prompt of whole blocks computes its last block again
        (65, 65, 16, 64),
        (480, 600, 528, 0),
        (528, 600, 528, 528),
        (0, 100, 16, 0),
        (0, 0, 16, 0),
        (1, 1, 1, 0),
        (500, 100, 16, 96),
        (8 * 1488, 8 * 1488 + 20, 16, 8 * 1488),
    ],
)
def test_only_whole_blocks_before_the_last_token_hit(shared: int, total: int, block: int, hits: int) -> None:
    assert expected_hits(shared, total, block) == hits


@pytest.mark.parametrize("numbers", [(1, 1, 0), (-1, 1, 16), (1, -1, 16)])
def test_impossible_numbers_are_refused(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        expected_hits(*numbers)
