"""Block arithmetic: how many tokens of a prompt the cache can give at most."""

from __future__ import annotations


def expected_hits(shared: int, total: int, block: int) -> int:
    """Return how many of a prompt's `total` tokens the cache gives when its first `shared` are cached.

    Only whole blocks are reused, and the last token is always computed, so an identical prompt of L tokens gives at
    most floor((L-1)/B)*B. A chat of 800 tokens of system prompt, 2,000 of history and 30 new ones:

    >>> expected_hits(2800, 2830, 16)
    2800
    >>> expected_hits(2830, 2830, 16)
    2816
    """
    if block < 1 or shared < 0 or total < 0:
        raise ValueError(f"shared and total must not be negative and block at least 1, got {shared}, {total}, {block}")
    return max(0, min(shared, total - 1) // block * block)
