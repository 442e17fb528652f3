"""The prefixes that matter, against trees worked out by hand."""

from __future__ import annotations

from prefixkit.lru import BlockCache
from prefixkit.workload.prefixes import PrefixTree


def test_nested_prefixes_are_each_credited_with_what_they_add() -> None:
    tree = PrefixTree(4)
    shared, deeper = list(range(8)), list(range(100, 108))
    for i in range(5):
        tree.add([*shared, 900 + i], line=i + 1)
    for i in range(3):
        tree.add([*shared, *deeper, 990 + i], line=i + 6)
    tree.add([1000, 1001, 1002, 1003, 1004], line=9)
    first, second = tree.top()
    assert (first.tokens, first.own_tokens, first.requests, first.saved_tokens, first.line) == (8, 8, 8, 56, 1)
    assert (second.tokens, second.own_tokens, second.requests, second.saved_tokens, second.line) == (16, 8, 3, 16, 6)


def test_savings_add_up_to_what_an_unlimited_cache_serves() -> None:
    tree, cache, hits = PrefixTree(4), BlockCache(4), 0
    for i in range(40):
        ids = [i % 2, *range(10 + i % 3), *range(50, 50 + i % 7), i]
        hits += cache.request(ids)
        tree.add(ids, line=i)
    assert hits > 0
    assert sum(p.saved_tokens for p in tree.top(1000)) == hits


def test_prompts_that_share_nothing_have_no_prefixes() -> None:
    tree = PrefixTree(4)
    for i in range(3):
        tree.add([i, *range(20)], line=i)
    assert tree.top() == []
