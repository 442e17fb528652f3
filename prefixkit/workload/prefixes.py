"""The shared prefixes of a workload: which ones matter, counted block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixkit.lru import chain

MOST_BLOCKS = 2_000_000


@dataclass(slots=True)
class _Node:
    depth: int
    line: int
    parent: int | None
    count: int = 0


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """A prefix that several requests begin with; `own_tokens` is what it adds to the shorter prefix it continues.

    `saved_tokens` is `own_tokens` for each request but the first: what an unlimited cache would not compute again.
    """

    tokens: int
    own_tokens: int
    requests: int
    saved_tokens: int
    line: int


class PrefixTree:
    """Blocks of prompts as a tree; blocks seen once are forgotten when there are more than `MOST_BLOCKS`."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._nodes: dict[int, _Node] = {}

    def add(self, ids: Sequence[int], line: int) -> None:
        """Count one prompt; only blocks that could be served are counted, so never the last token's."""
        parent: int | None = None
        for depth, digest in enumerate(chain(ids[: len(ids) - 1], self._block), 1):
            node = self._nodes.get(digest)
            if node is None:
                node = self._nodes[digest] = _Node(depth, line, parent)
            node.count += 1
            parent = digest
        if len(self._nodes) > MOST_BLOCKS:
            self._nodes = {k: n for k, n in self._nodes.items() if n.count > 1}

    def top(self, most: int = 10) -> list[SharedPrefix]:
        """Return the prefixes that save most, each run of equally frequent blocks taken as one."""
        ends = {k for k, n in self._nodes.items() if n.count > 1}
        for node in self._nodes.values():
            parent = self._nodes.get(node.parent) if node.parent is not None else None
            if node.parent is not None and parent is not None and parent.count == node.count:
                ends.discard(node.parent)
        found = []
        for key in ends:
            end = self._nodes[key]
            own = end.depth - self._depth_of_rarer_start(key)
            own_tokens = own * self._block
            found.append(
                SharedPrefix(
                    tokens=end.depth * self._block,
                    own_tokens=own_tokens,
                    requests=end.count,
                    saved_tokens=own_tokens * (end.count - 1),
                    line=end.line,
                )
            )
        return sorted(found, key=lambda p: (-p.saved_tokens, p.line, p.tokens))[:most]

    def _depth_of_rarer_start(self, key: int) -> int:
        """Return the depth of the last block above `key` that more requests share."""
        count = self._nodes[key].count
        at: int | None = key
        while at is not None and (node := self._nodes.get(at)) is not None and node.count == count:
            at = node.parent
        above = self._nodes.get(at) if at is not None else None
        return above.depth if above else 0
