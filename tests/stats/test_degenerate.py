"""Every statistic on data that lack something: a status and a sentence, never an exception."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from prefixkit import stats
from tests.stats.simulated import run, switch
from tests.stats.test_lines import DEGENERATE


def everything(records: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield the result of every statistic."""
    found = stats.fit(records)
    model = stats.attribution(records)
    rate = stats.tpot_test(records)
    yield found
    yield stats.leading_contrast(records)
    yield stats.control_against_off(found)
    yield stats.first_sends_against_off(found)
    yield stats.why_no_gain(found, 0.9)
    yield model
    yield stats.ttft_parts(records)
    yield stats.ceiling(found)
    yield stats.amdahl_bound(found.off, 1000)
    yield stats.pooled(found.on, found.off)
    yield stats.repeats_needed(records, 0.02)
    yield stats.narrow_enough(records, 0.02)
    yield rate
    yield stats.end_to_end(records)
    yield stats.steps(found.off, found.on, chunk_tokens=2048, block_size=16)
    yield stats.compare(records, records)
    yield stats.worth(model, system=800, history=2000, question=30, output=64, tpot_ms=rate.on)


def estimates(node: Any) -> Iterator[stats.Estimate]:
    """Yield every estimate inside a result."""
    if isinstance(node, stats.Estimate):
        yield node
    elif isinstance(node, tuple | list):
        for item in node:
            yield from estimates(item)
    elif isinstance(node, dict):
        yield from estimates(list(node.values()))
    elif dataclasses.is_dataclass(node):
        yield from estimates([getattr(node, field.name) for field in dataclasses.fields(node)])


def check(records: list[dict[str, Any]]) -> None:
    for result in everything(records):
        for estimate in estimates(result):
            numbers = [v for v in (estimate.value, estimate.low, estimate.high) if v is not None]
            assert np.isfinite(numbers).all()
            assert (estimate.low is None) == (estimate.high is None)
            assert estimate.low is None or estimate.high is None or estimate.low < estimate.high
            assert estimate.low is not None or (estimate.note and estimate.status != "ok")


def both_arms(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    warm = [{**r, "arm": "on", "phase": "warm"} for r in records]
    return [*records, *warm, *({**r, "phase": "control"} for r in warm)]


@pytest.mark.parametrize("records", [r for r, _ in DEGENERATE.values()], ids=DEGENERATE.keys())
def test_degenerate_data(records: list[dict[str, Any]]) -> None:
    check(both_arms(records))


@pytest.mark.parametrize("seed", range(25))
def test_random_pieces_of_a_run(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = run(seed=seed, rounds=int(rng.integers(1, 4)), noise_ms=float(rng.choice([0.0, 5.0]))) + switch()
    keep = rng.random(len(whole)) < rng.choice([0.1, 0.3, 0.8])
    check([r for r, k in zip(whole, keep, strict=True) if k])


JUNK = (None, math.nan, math.inf, -1, 0, 1e308, 10**400, "x", [], {"a": 1}, True, "\ud800", 353)
KEYS = ("record", "arm", "phase", "experiment", "prompt_tokens", "ttft_ms", "order", "target_tokens", "cached_tokens",
        "condition", "error", "superseded", "schema", "profile", "e2e_ms", "completion_tokens", "server")  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_junk_in_any_field(seed: int) -> None:
    rng = random.Random(seed)
    records = [dict(r) for r in [*run(rounds=3), *switch()]]
    for _ in range(rng.choice([1, 20, 200])):
        rng.choice(records)[rng.choice(KEYS)] = rng.choice(JUNK)
    for key in rng.sample(KEYS, seed % 2):
        for record in records:
            record[key] = rng.choice(JUNK)
    check(records)
    str(stats.fit(records)).encode()


def test_a_whole_run() -> None:
    check(run() + switch())
