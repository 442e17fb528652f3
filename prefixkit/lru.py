"""Block arithmetic: what a prefix cache of a given size and block would have served, request by request.

The rules are those of vLLM's V1 block pool: only full blocks are shared, at most `(L - 1) // B` blocks of an L-token
prompt are served, equal blocks that were computed twice are kept twice, a finished request gives its blocks back tail
first, free blocks are reused least recently freed first, and one block of the pool is never handed out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any


def common_prefix(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many leading tokens (or characters) `a` and `b` share."""
    # Halving compares slices, which is many times faster than a loop over long prompts.
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def chain(ids: Sequence[int], block: int, salt: str | None = None) -> list[int]:
    """Return the hash of each full block of `ids`; each covers everything before it."""
    hashes: list[int] = []
    parent = hash(("root", salt))
    for start in range(0, len(ids) - block + 1, block):
        parent = hash((parent, *ids[start : start + block]))
        hashes.append(parent)
    return hashes


class BlockCache:
    """A block pool of `capacity_tokens` (None: unlimited); `request` says what it serves and then keeps the prompt."""

    def __init__(self, block: int, capacity_tokens: int | None = None, *, enabled: bool = True) -> None:
        self.block = block
        self.enabled = enabled
        self._limit = None if capacity_tokens is None else max(1, capacity_tokens // block - 1)
        self._made = 0
        self._free: OrderedDict[int, None] = OrderedDict()
        self._hash_of: dict[int, int] = {}
        self._holders: dict[int, dict[int, None]] = {}

    def request(self, ids: Sequence[int], generated: Sequence[int] = (), *, salt: str | None = None) -> int:
        """Return the tokens of prompt `ids` that are served from the cache, and cache the prompt and its answer.

        `generated` are the tokens of the answer; the last of them is never computed, so never cached.
        """
        if not self.enabled:
            return 0
        cached = self.served(ids, salt=salt)
        whole = [*ids, *generated[:-1]]
        hashes = chain(whole, self.block, salt)
        held = [next(iter(self._holders[digest])) for digest in hashes[: cached // self.block]]
        for number in held:
            del self._free[number]
        fresh: list[int] = []
        while len(held) + len(fresh) < -(-len(whole) // self.block) and (taken := self._take()):
            fresh.append(taken)
        for number, digest in zip(fresh, hashes[len(held) :], strict=False):
            self._hash_of[number] = digest
            self._holders.setdefault(digest, {})[number] = None
        self._give_back([*held, *fresh])
        return cached

    def served(self, ids: Sequence[int], *, salt: str | None = None) -> int:
        """Return the tokens of `ids` that are cached now, as a request for them would find."""
        found = 0
        for digest in chain(ids[: max(0, len(ids) - 1)], self.block, salt):
            if not self.enabled or digest not in self._holders:
                break
            found += 1
        return found * self.block

    def _take(self) -> int | None:
        """Return a block that holds nothing, evicting if need be; None when a request is larger than the pool."""
        if self._limit is None or self._made < self._limit:
            self._made += 1
            return self._made
        if not self._free:
            return None
        number, _ = self._free.popitem(last=False)
        digest = self._hash_of.pop(number, None)
        if digest is not None:
            del self._holders[digest][number]
            if not self._holders[digest]:
                del self._holders[digest]
        return number

    def _give_back(self, numbers: list[int]) -> None:
        unhashed = [number for number in numbers if number not in self._hash_of]
        for number in reversed(numbers):
            self._free[number] = None
        # A block that is not full serves nobody, so it is reused first.
        for number in unhashed:
            self._free.move_to_end(number, last=False)
