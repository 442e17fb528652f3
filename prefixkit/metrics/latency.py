"""How much faster warm requests are than cold ones, with an interval; one slow first request must not decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_Z95 = 1.959964
HIT_LIKE = 0.7
"""Warm requests at or below this share of the cold time behave as if most of the prompt was cached."""


@dataclass(frozen=True, slots=True)
class LatencyShift:
    """Cold minus warm TTFT in ms (median of all pairs) with a 95 % interval; None where one side is empty."""

    saved_ms: float | None
    low_ms: float | None
    high_ms: float | None
    ratio: float | None

    @property
    def distinguishable(self) -> bool:
        """Tell whether the interval excludes zero."""
        return self.low_ms is not None and self.high_ms is not None and (self.low_ms > 0 or self.high_ms < 0)

    @property
    def hit_like(self) -> bool:
        """Tell whether warm requests are so much faster that the cache must have served them."""
        return self.ratio is not None and self.ratio <= HIT_LIKE and (self.saved_ms or 0.0) > 0

    def __str__(self) -> str:
        if self.saved_ms is None or self.low_ms is None or self.high_ms is None:
            return "no latencies to compare"
        text = f"{self.saved_ms:.0f} ms saved (95 % interval {self.low_ms:.0f} to {self.high_ms:.0f} ms)"
        return text if self.distinguishable else f"{text}: not distinguishable from no effect"


def latency_shift(cold_ms: Sequence[float], warm_ms: Sequence[float]) -> LatencyShift:
    """Return the Hodges-Lehmann shift between cold and warm requests with its rank-sum interval."""
    if not cold_ms or not warm_ms:
        return LatencyShift(None, None, None, None)
    pairs = sorted(c - w for c in cold_ms for w in warm_ms)
    n, m = len(cold_ms), len(warm_ms)
    outside = max(0, math.floor(n * m / 2 - _Z95 * math.sqrt(n * m * (n + m + 1) / 12)))
    ratio = median(warm_ms) / median(cold_ms) if median(cold_ms) > 0 else None
    return LatencyShift(median(pairs), pairs[outside], pairs[-1 - outside], ratio)
