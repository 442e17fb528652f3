"""What a workload shares, by arithmetic alone: nothing is sent but to the tokenizer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from prefixkit.chat_text import first_difference, kind_at, message_text
from prefixkit.lru import BlockCache, common_prefix
from prefixkit.workload.prefixes import PrefixTree
from prefixkit.workload.requests import Request
from prefixkit.workload.volatile import Messages, SegmentCounts

Tokenize = Callable[[Messages], list[int] | None]
_RECENT = 64
_MOST_KINDS_OF_BREAK = 1000
_SHOWN = 60
_SHORT = {
    "a UUID": "id",
    "an id": "id",
    "a clock": "time",
    "a date with a clock": "time",
    "a Unix time": "time",
    "a date": "date",
    "an e-mail address": "address",
    "a number": "number",
}


@dataclass(slots=True)
class Break:
    """One way in which prompts of a template part: where, at what kind of text, and what follows it.

    `tokens_after` sums the tokens behind the first differing one; `in_last` says that it is the newest message, where
    a difference is natural. `line` and `other_line` are an example, `text` and `other_text` what stands there (only
    when texts may be shown).
    """

    role: str
    message: int
    kind: str
    in_last: bool
    requests: int
    tokens_after: int
    first_token: int
    line: int
    other_line: int
    text: str | None = None
    other_text: str | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """Arithmetic over a whole workload, in tokens; a block of `block_size` is the unit of sharing.

    `hits`: served by a cache of the server's capacity, `ideal_hits`: by an unlimited one; `moved_hits` and
    `moved_ideal_hits`: the same with the volatile part of the first message behind the last user message.
    """

    requests: int
    left_out: int
    prompt_tokens: int
    block_size: int
    capacity_tokens: int | None
    hits: int
    ideal_hits: int
    moved_requests: int
    moved_prompt_tokens: int
    moved_hits: int
    moved_ideal_hits: int
    prefixes: list[dict[str, Any]]
    breaks: list[dict[str, Any]]


class _Breaks:
    """First differences between a request and the most similar of the last few of its template."""

    def __init__(self, counts: SegmentCounts, show: bool) -> None:
        self._counts = counts
        self._show = show
        self._recent: dict[int, deque[tuple[Request, list[int]]]] = {}
        self._found: dict[tuple[int, str, int, str, bool], Break] = {}

    def add(self, request: Request, ids: list[int]) -> None:
        family = self._counts.family(request.messages)
        recent = self._recent.setdefault(family, deque(maxlen=_RECENT))
        if recent:
            other, other_ids = max(recent, key=lambda earlier: common_prefix(earlier[1], ids))
            self._note(family, request, ids, other, common_prefix(other_ids, ids))
        recent.append((request, ids))
        if len(self._recent) > _MOST_KINDS_OF_BREAK:
            del self._recent[next(iter(self._recent))]

    def top(self, most: int = 10) -> list[Break]:
        return sorted(self._found.values(), key=lambda b: (b.in_last, -b.tokens_after, b.line))[:most]

    def _note(self, family: int, request: Request, ids: list[int], other: Request, shared: int) -> None:
        place = first_difference(request.messages, other.messages)
        if place is None:
            return
        index, char = place
        message, text = request.messages[index], message_text(request.messages[index])
        in_last = index == len(request.messages) - 1 and index > 0
        key = (family, str(message["role"]), index, _SHORT.get(kind_at(text, char)[0], "text"), in_last)
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MOST_KINDS_OF_BREAK:
                return
            found = self._found[key] = Break(key[1], index, key[3], in_last, 0, 0, shared, request.line, other.line)
            if self._show:
                start = max(0, char - _SHOWN // 2)
                found.text = text[start : start + _SHOWN]
                found.other_text = message_text(other.messages[index])[start : start + _SHOWN]
        found.requests += 1
        found.tokens_after += len(ids) - shared
        found.first_token = min(found.first_token, shared)


def analyse(
    requests: Callable[[], Iterable[Request]],
    tokenize: Tokenize,
    *,
    block_size: int,
    capacity_tokens: int | None = None,
    most_tokens: int | None = None,
    show: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Analysis:
    """Return what `requests()` share; it is called twice, so a file can be streamed.

    A prompt longer than `most_tokens`, or one that `tokenize` returns None for, is left out. `show` keeps excerpts.
    """
    counts = SegmentCounts()
    for request in requests():
        counts.add(request.messages)
    caches = [BlockCache(block_size, limit) for limit in (capacity_tokens, None, capacity_tokens, None)]
    hits = [0, 0, 0, 0]
    tree, breaks = PrefixTree(block_size), _Breaks(counts, show)
    count = left_out = total = moved_total = moved_requests = 0
    texts: dict[int, str] = {}
    for count, request in enumerate(requests(), 1):
        ids = tokenize(request.messages)
        if ids is None or (most_tokens is not None and len(ids) > most_tokens):
            left_out += 1
            continue
        moved = counts.moved(request.messages)
        moved_ids = ids if moved is request.messages else tokenize(moved) or ids
        moved_requests += moved is not request.messages
        served = [cache.request(x) for cache, x in zip(caches, (ids, ids, moved_ids, moved_ids), strict=True)]
        hits = [a + b for a, b in zip(hits, served, strict=True)]
        total += len(ids)
        moved_total += len(moved_ids)
        tree.add(ids, request.line)
        breaks.add(request, ids)
        if progress:
            progress(count)
    prefixes = tree.top()
    if show:
        wanted = {p.line for p in prefixes}
        texts = {r.line: message_text(r.messages[0])[:_SHOWN] for r in requests() if r.line in wanted}
    return Analysis(
        requests=count,
        left_out=left_out,
        prompt_tokens=total,
        block_size=block_size,
        capacity_tokens=capacity_tokens,
        hits=hits[0],
        ideal_hits=hits[1],
        moved_requests=moved_requests,
        moved_prompt_tokens=moved_total,
        moved_hits=hits[2],
        moved_ideal_hits=hits[3],
        prefixes=[{**asdict(p), "text": texts.get(p.line)} for p in prefixes],
        breaks=[asdict(b) for b in breaks.top()],
    )
