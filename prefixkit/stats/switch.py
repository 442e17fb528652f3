"""On against off behind one shared system prompt, question by question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.estimate import Estimate
from prefixkit.stats.ratio import mean_estimate, paired_reduction
from prefixkit.stats.rows import Floats, condition, real, select


@dataclass(frozen=True, slots=True)
class SwitchContrast:
    """Mean of off minus on over the questions that both arms answered, first (cold) question left out."""

    questions: int
    ttft_saved_ms: Estimate
    ttft_reduction: Estimate
    answer_saved_ms: Estimate
    answer_reduction: Estimate


def switch_contrast(records: Iterable[Mapping[str, Any]]) -> SwitchContrast:
    """Pair warm answers of arm on with arm off's answers to the same question; repeats are averaged first."""
    records = list(records)
    warm, cold = select(records, "switch", "on", "warm"), select(records, "switch", "off", "cold")
    on, off = _paired(warm, cold, "ttft_ms")
    whole_on, whole_off = _paired(warm, cold, "e2e_ms")
    return SwitchContrast(
        len(on), mean_estimate(off - on), paired_reduction(on, off),
        mean_estimate(whole_off - whole_on), paired_reduction(whole_on, whole_off),
    )  # fmt: skip


def _paired(on: list[Mapping[str, Any]], off: list[Mapping[str, Any]], field: str) -> tuple[Floats, Floats]:
    sides = [_by_question(side, field) for side in (on, off)]
    shared = [q for q in sides[0] if q in sides[1]]
    first, second = (np.array([np.mean(side[q]) for q in shared], dtype=float) for side in sides)
    return first, second


def _by_question(probes: list[Mapping[str, Any]], field: str) -> dict[Any, list[float]]:
    found: dict[Any, list[float]] = {}
    for probe in probes:
        value, question = real(probe.get(field)), real(condition(probe, "question"))
        if value is not None and question is not None:
            found.setdefault(question, []).append(value)
    return found
