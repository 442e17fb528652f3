"""Where a TTFT goes: engine, queue, API server, and what is left for client, network and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import PER_1K
from prefixkit.stats.ratio import mean_estimate
from prefixkit.stats.regression import regress
from prefixkit.stats.rows import Floats, length_index, real, select

PARTS = ("engine", "queue", "api_server", "client_network")
UNSPLIT = ("engine", "queue", "outside")


@dataclass(frozen=True, slots=True)
class PartsAtLength:
    """Mean milliseconds of each part at one prompt length; the parts of one request add up to its TTFT."""

    tokens: float
    n: int
    ttft_ms: Estimate
    parts: dict[str, Estimate]


@dataclass(frozen=True, slots=True)
class TtftParts:
    """The parts by length, the slope of each part, and the part that makes the slope."""

    by_length: tuple[PartsAtLength, ...]
    slopes: dict[str, Estimate]
    largest_slope: str | None
    n: int
    dropped: dict[str, int]
    status: str
    note: str


def ttft_parts(records: Iterable[Mapping[str, Any]], arm: str = "on", phase: str = "warm") -> TtftParts:
    """Split the TTFT of experiment `length` of one arm and phase.

    Engine (scheduled to first token) and queue are the server's own times. API server is the time to the response
    headers, which vLLM sends once the prompt is rendered and tokenised, less the connection's round trip. The rest is
    client, network and the way back. Without header times the last two are one part, "outside".
    """
    probes = select(records, "length", arm, phase)
    split = [(p, parts) for p in probes if (parts := split_ttft(p)) is not None]
    dropped = {"no server times": len(probes) - len(split)} if len(split) < len(probes) else {}
    if not split:
        note = (
            f"No {phase} request of arm {arm} has the server's own times (--enable-per-request-metrics, vLLM >= 0.25)."
            if probes
            else f"Arm {arm} has no {phase} request of experiment length."
        )
        return TtftParts((), {}, None, 0, dropped, "empty", note)
    names = PARTS if all("api_server" in parts for _, parts in split) else UNSPLIT
    tokens = np.array([p["prompt_tokens"] for p, _ in split], dtype=float)
    values = {name: np.array([_part(parts, name) for _, parts in split]) for name in names}
    ttft = np.array([p["ttft_ms"] for p, _ in split], dtype=float)
    index = length_index(tokens, [real(p.get("target_tokens")) for p, _ in split])
    by_length = tuple(
        PartsAtLength(
            float(tokens[index == i].mean()), int((index == i).sum()), mean_estimate(ttft[index == i]),
            {name: mean_estimate(v[index == i]) for name, v in values.items()},
        )
        for i in range(int(index.max()) + 1)
    )  # fmt: skip
    slopes = {name: _slope(tokens, v, len(by_length)) for name, v in values.items()}
    total = _slope(tokens, ttft, len(by_length))
    largest, note = _largest(slopes, total)
    return TtftParts(by_length, {**slopes, "total": total}, largest, len(split), dropped, "ok", note)


def split_ttft(probe: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the parts of one request in ms, or None where the server's times are missing or exceed the TTFT."""
    server, timings = (v if isinstance(v, Mapping) else {} for v in (probe.get("server"), probe.get("timings")))
    engine, queue, ttft = real(server.get("ttft_ms")), real(server.get("queue_ms")), real(probe.get("ttft_ms"))
    if engine is None or ttft is None:
        return None
    queue = queue or 0.0
    outside = ttft - engine - queue
    if outside < -0.02 * ttft:
        return None
    headers = real(timings.get("headers"))
    if headers is None:
        return {"engine": engine, "queue": queue, "outside": outside}
    api = min(max(headers - (real(timings.get("connect")) or 0.0), 0.0), max(outside, 0.0))
    return {"engine": engine, "queue": queue, "api_server": api, "client_network": outside - api}


def _part(parts: dict[str, float], name: str) -> float:
    return parts[name] if name in parts else parts["api_server"] + parts["client_network"]


def _slope(tokens: Floats, values: Floats, lengths: int) -> Estimate:
    if lengths < 2 or len(tokens) < 3 or np.ptp(values) == 0:
        return missing("not-estimable", "Two lengths and three requests make a slope.", n=len(tokens))
    model = regress(values, tokens[:, None], scale_by=tokens)
    if model.exact:
        return missing("exact", "No noise to make an interval from.", n=len(tokens))
    return model.coefficient(0).scaled(PER_1K).estimate(n=len(tokens), unit="ms/1k tokens", method=model.method)


def _largest(slopes: dict[str, Estimate], total: Estimate) -> tuple[str | None, str]:
    known = {name: s for name, s in slopes.items() if s.value is not None}
    if not known or not total.value:
        return None, "Too few lengths to say which part grows with the prompt."
    name = max(known, key=lambda part: known[part].value or 0.0)
    share = (known[name].value or 0.0) / total.value
    if not known[name].excludes(0):
        return None, f"No part clearly grows with the prompt (largest: {name}, {known[name]})."
    return name, f"{name} makes {share:.0%} of the slope: {known[name]} of {total}."
