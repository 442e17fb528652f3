"""A handful of probes of one server, summed up: what the command `probe` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from prefixkit.probe.calibrate import Calibration, quantile
from prefixkit.probe.result import Probe

SATURATED_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Survey:
    """Probes in the order of their requests, what the client itself adds, and how busy it was."""

    probes: tuple[Probe, ...]
    calibration: Calibration | None = None
    busy_share: float = 0.0

    def summary(self) -> dict[str, Any]:
        """Return counts, and quantiles over the requests that did not fail; null where there is none."""
        good = [p for p in self.probes if p.error is None]
        ttfts = [p.ttft_ms for p in good if p.ttft_ms is not None]
        p50 = _median(ttfts)
        return {
            "n": len(self.probes),
            "failed": len(self.probes) - len(good),
            "throttled": sum(p.attempt > 1 for p in self.probes),
            "ttft_first_ms": ttfts[0] if ttfts else None,
            "ttft_p50_ms": p50,
            "ttft_p90_ms": quantile(ttfts, 0.9) if ttfts else None,
            "ttft_p99_ms": quantile(ttfts, 0.99) if ttfts else None,
            "content_p50_ms": _median([p.content_ms for p in good]),
            "e2e_p50_ms": _median([p.e2e_ms for p in good]),
            "prompt_tokens": _total([p.prompt_tokens for p in good]),
            "cached_tokens": _total([p.cached_tokens for p in good]),
            "completion_tokens": _total([p.completion_tokens for p in good]),
            "errors": dict(Counter(p.error["kind"] for p in self.probes if p.error)),
            "calibration": self.calibration.record() if self.calibration else None,
            "bottleneck": self._bottleneck(p50),
        }

    def record(self) -> dict[str, Any]:
        """Return the probes and their summary as JSON takes them."""
        return {"probes": [p.record() for p in self.probes], "summary": self.summary()}

    def __str__(self) -> str:
        lines = [f"{'#':>4}{'TTFT ms':>11}{'content ms':>12}{'end ms':>11}{'prompt':>8}{'cached':>8}"]
        for number, p in enumerate(self.probes, 1):
            times = f"{_cell(p.ttft_ms):>11}{_cell(p.content_ms):>12}{_cell(p.e2e_ms):>11}"
            lines.append(f"{number:>4}{times}{_cell(p.prompt_tokens):>8}{_cell(p.cached_tokens):>8}")
            if p.error:
                lines.append(f"     {p.error['kind']}: {p.error['message']}")
            lines += [f"     note: {warning}" for warning in p.warnings]
        s = self.summary()
        lines.append(
            f"{s['n']} requests, {s['failed']} failed; TTFT first {_cell(s['ttft_first_ms'])} ms,"
            f" median {_cell(s['ttft_p50_ms'])} ms, p99 {_cell(s['ttft_p99_ms'])} ms"
        )
        if self.calibration:
            lines.append(str(self.calibration))
        if s["bottleneck"]:
            lines.append(s["bottleneck"])
        return "\n".join(lines)

    def _bottleneck(self, ttft_p50_ms: float | None) -> str | None:
        if self.busy_share > SATURATED_SHARE:
            return (
                f"the client was the bottleneck: its thread was busy {self.busy_share:.0%} of the time;"
                " use fewer at once, or several machines"
            )
        return self.calibration.bottleneck(ttft_p50_ms) if self.calibration else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return round(median(known), 4) if known else None


def _total(values: Sequence[int | None]) -> int | None:
    return sum(v for v in values if v is not None) if any(v is not None for v in values) else None


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
