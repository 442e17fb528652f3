"""The server's counters around a stretch of requests, and what block arithmetic says they should be."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from prefixkit.metrics import HitRate, MetricsError, expected_hits, fetch, hit_rate
from prefixkit.metrics.reconcile import reconcile
from prefixkit.prompts import Message

SETTLE_STEP_S = 0.02
SETTLE_STEPS = 100


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as the cache sees it; `messages` is None where the sender did not say."""

    messages: list[Message] | None
    cache_salt: str | None
    failed: bool


@dataclass(slots=True)
class Window:
    """A stretch of requests between two readings of the counters."""

    experiment: str
    scope: str
    before: list[str] | HitRate
    first: int
    probes: list[dict[str, Any]] = field(default_factory=list)
    predicted_tokens: int | None = None


def read_settled(urls: Sequence[str], api_key: str | None = None) -> list[str]:
    """Return the metrics pages once they stand still: counters follow the answer by an engine step."""
    pages = fetch(list(urls), api_key=api_key)
    for _ in range(SETTLE_STEPS):
        time.sleep(SETTLE_STEP_S)
        again = fetch(list(urls), api_key=api_key)
        if _moving(again) == _moving(pages):
            return again
        pages = again
    return pages


def read_or_say(urls: Sequence[str], api_key: str | None = None) -> list[str] | HitRate:
    """Return the settled pages, or a HitRate that says why there are none."""
    if not urls:
        return HitRate("unreachable", message="no metrics page is known for this server")
    try:
        return read_settled(urls, api_key)
    except MetricsError as error:
        return HitRate("unreachable", message=str(error))


def between(before: list[str] | HitRate, after: list[str] | HitRate) -> HitRate:
    """Return the hit rate between two readings of which either may have failed."""
    if isinstance(before, HitRate):
        return before
    return after if isinstance(after, HitRate) else hit_rate(before, after)


def compare(rate: HitRate, window: Window, predicted: int | None, after: list[str] | HitRate) -> dict[str, Any]:
    """Return how counters, replies and block arithmetic agree over a window, as a JSON object."""
    pages = [reading if isinstance(reading, list) else [] for reading in (window.before, after)]
    return asdict(reconcile(rate, window.probes, predicted, before=pages[0], after=pages[1]))


def predict(
    history: Sequence[Sent], first: int, block: int | None, tokenize: Callable[[list[Message]], list[int]]
) -> int | None:
    """Return how many tokens of the requests from `first` on the blocks of all earlier ones can give.

    Nothing is taken to be evicted. None where a text or the block size is not known, or where a request failed.
    """
    if block is None or any(sent.messages is None or sent.failed for sent in history):
        return None
    known: dict[tuple[tuple[str, str], ...], list[int]] = {}
    seen: dict[str | None, list[list[int]]] = {}
    total = 0
    for number, sent in enumerate(history):
        messages = sent.messages or []
        key = tuple((m["role"], m["content"]) for m in messages)
        if key not in known:
            known[key] = tokenize(messages)
        ids = known[key]
        earlier = seen.setdefault(sent.cache_salt, [])
        if number >= first:
            total += expected_hits(max((_shared(ids, other) for other in earlier), default=0), len(ids), block)
        earlier.append(ids)
    return total


def _shared(a: list[int], b: list[int]) -> int:
    for number, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return number
    return min(len(a), len(b))


def _moving(pages: list[str]) -> list[str]:
    return [line for page in pages for line in page.splitlines() if "prefix_cache" in line or "tokens_total" in line]
