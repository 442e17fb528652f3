"""Block arithmetic against cases worked out by hand."""

from __future__ import annotations

import pytest

from prefixkit.lru import BlockCache, chain, common_prefix


def prompt(name: int, length: int) -> list[int]:
    return [name * 10_000 + i for i in range(length)]


def test_common_prefix_counts_leading_equal_tokens() -> None:
    assert common_prefix([1, 2, 3], [1, 2, 4, 5]) == 2
    assert common_prefix([1, 2], [1, 2, 3]) == 2
    assert common_prefix([], [1]) == 0


def test_a_block_hash_covers_everything_before_it() -> None:
    a, b = chain([1, 2, 3, 4], 2), chain([9, 2, 3, 4], 2)
    assert len(a) == 2
    assert a[1] != b[1]
    assert chain([1, 2, 3], 2) == a[:1]
    assert chain([1, 2], 2, "salt") != a[:1]


@pytest.mark.parametrize(("length", "expected"), [(1, 0), (32, 0), (33, 32), (64, 32), (65, 64), (100, 96)])
def test_an_equal_prompt_recomputes_at_least_its_last_token(length: int, expected: int) -> None:
    cache = BlockCache(32)
    ids = prompt(1, length)
    assert cache.request(ids) == 0
    assert cache.request(ids) == expected


def test_a_changed_token_loses_its_block_and_all_that_follow() -> None:
    cache = BlockCache(16)
    ids = prompt(1, 100)
    cache.request(ids)
    for place in (0, 15, 16, 17, 50, 99):
        changed = [*ids[:place], -1, *ids[place + 1 :]]
        assert cache.served(changed) == place // 16 * 16 if place < 99 else 96


def test_the_answer_is_cached_but_for_its_last_token() -> None:
    cache = BlockCache(4)
    ids, answer = prompt(1, 6), prompt(2, 3)
    cache.request(ids, answer)
    assert cache.served([*ids, *answer, 7, 7]) == 8
    short = BlockCache(4)
    short.request(ids, answer[:2])
    assert short.served([*ids, *answer[:2], 7, 7]) == 4


def test_a_salt_shares_nothing_with_another() -> None:
    cache = BlockCache(4)
    ids = prompt(1, 9)
    cache.request(ids, salt="a")
    assert cache.served(ids) == 0
    assert cache.served(ids, salt="b") == 0
    assert cache.served(ids, salt="a") == 8


def test_a_working_set_within_the_pool_hits_and_a_larger_one_in_cyclic_order_does_not() -> None:
    fits, over = BlockCache(16, 16 * 41), BlockCache(16, 16 * 41)
    for cache, count in ((fits, 8), (over, 12)):
        prompts = [prompt(i, 80) for i in range(count)]
        first = sum(cache.request(p) for p in prompts)
        second = sum(cache.request(p) for p in prompts)
        assert first == 0
        assert second == (8 * 64 if count == 8 else 0)


def test_the_tail_of_the_oldest_prompt_is_evicted_first() -> None:
    cache = BlockCache(16, 16 * 11)
    a, b, c = prompt(1, 80), prompt(2, 80), prompt(3, 32)
    cache.request(a)
    cache.request(b)
    cache.request(c)
    assert cache.served([*a, 0]) == 48
    assert cache.served([*b, 0]) == 80


def test_a_block_that_is_not_full_is_reused_first() -> None:
    cache = BlockCache(16, 16 * 6)
    a, b = prompt(1, 70), prompt(2, 10)
    cache.request(a)
    cache.request(b)
    assert cache.served(a) == 64


def test_a_prompt_larger_than_the_pool_keeps_what_fits() -> None:
    cache = BlockCache(16, 16 * 4)
    assert cache.request(prompt(1, 200)) == 0
    assert cache.served(prompt(1, 200)) == 48


def test_off_serves_nothing() -> None:
    cache = BlockCache(16, enabled=False)
    ids = prompt(1, 50)
    cache.request(ids)
    assert cache.request(ids) == 0
    assert cache.served(ids) == 0
