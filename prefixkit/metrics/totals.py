"""Sums over engines of any series."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
