"""Sums over engines of any counter, and readings of gauges that can be out of date."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from prefixkit.metrics.page import Page, parse


def totals(pages: str | bytes | Sequence[str | bytes], name: str, labels: dict[str, str] | None = None) -> float | None:
    """Return a series summed over engines and pages, or None if no page has it.

    `name` is a counter with or without `_total`, a gauge, or a histogram's `_sum` or `_count`; `labels` narrows it.
    """
    texts = [pages] if isinstance(pages, str | bytes) else pages
    return sum_of([parse(text) for text in texts], name, labels)


def sum_of(pages: Sequence[Page], name: str, labels: dict[str, str] | None = None) -> float | None:
    """Return `totals` of parsed pages."""
    values = []
    for page in pages:
        for candidate in (name + "_total", name):
            if candidate in page.series:
                samples = page.samples(candidate)
                wanted = (labels or {}).items()
                values += [float(s.value) for s in samples if wanted <= s.labels.items() and math.isfinite(s.value)]
                break
    return sum(values) if values else None


@dataclass(frozen=True, slots=True)
class KvUsage:
    """The share of KV cache in use (the fullest engine); `stale` when the page shows a moment that has passed."""

    fraction: float | None
    stale: bool
    message: str


def kv_usage(before: str, after: str) -> KvUsage:
    """Return the KV usage of `after`, marked stale when requests seem to run but no engine has stepped since `before`.

    After all requests were aborted a page keeps its old gauges until the next request makes an engine step.
    """
    old, new = parse(before), parse(after)
    names = new.names(lambda n: n in ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"))
    values = [float(s.value) for n in names[:1] for s in new.samples(n) if math.isfinite(s.value)]
    if not values:
        return KvUsage(None, False, "the page has no KV usage gauge")
    running = sum_of([new], "vllm:num_requests_running") or 0.0
    stepped = any(
        sum_of([old], n) != sum_of([new], n)
        for n in ("vllm:iteration_tokens_total_count", "vllm:generation_tokens", "vllm:prompt_tokens")
    )
    if running > 0 and not stepped:
        message = (
            f"KV usage {max(values):.0%} is stale: {running:.0f} requests seem to run but nothing moves; send one more"
        )
        return KvUsage(max(values), True, message)
    return KvUsage(max(values), False, f"KV usage {max(values):.0%}")
