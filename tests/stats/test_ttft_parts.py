"""Where a TTFT goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prefixkit.stats import ttft_parts
from prefixkit.stats.ttft_parts import PARTS, split_ttft
from tests.stats.simulated import probe


def warm_requests() -> list[dict[str, Any]]:
    """Engine 7 ms + 0.35 ms/1k, queue 0.1, API server 1 ms + 2 ms/1k, the rest 0.5 ms."""
    rng = np.random.default_rng(0)
    records = []
    for tokens in (353, 1337, 3961, 8000) * 5:
        engine = 7 + 0.35 * tokens / 1000 + float(rng.normal(0, 0.05))
        queue = 0.1 + float(rng.uniform(0, 0.02))
        headers = 1.2 + 2 * tokens / 1000 + float(rng.normal(0, 0.05))
        ttft = engine + queue + headers + 0.3 + float(rng.uniform(0, 0.02))
        records.append(
            probe("on", "warm", tokens, ttft, server={"ttft_ms": engine, "queue_ms": queue},
                  timings={"connect": 0.2, "headers": headers})
        )  # fmt: skip
    return records


def test_parts_add_up_to_the_ttft_at_every_length() -> None:
    found = ttft_parts(warm_requests())
    assert found.status == "ok"
    assert len(found.by_length) == 4
    for cell in found.by_length:
        assert sum(part.value or 0 for part in cell.parts.values()) == pytest.approx(cell.ttft_ms.value)
        assert all(part.ci for part in cell.parts.values())


def test_the_part_that_makes_the_slope_is_named() -> None:
    found = ttft_parts(warm_requests())
    assert found.largest_slope == "api_server"
    assert found.slopes["api_server"].value == pytest.approx(2.0, abs=0.05)
    assert sum(found.slopes[part].value or 0 for part in PARTS) == pytest.approx(found.slopes["total"].value)
    assert "api_server makes 8" in found.note


def test_without_header_times_the_outside_is_one_part() -> None:
    found = ttft_parts({**r, "timings": {}} for r in warm_requests())
    assert set(found.by_length[0].parts) == {"engine", "queue", "outside"}


def test_requests_without_server_times_are_counted() -> None:
    records = warm_requests()
    records[0]["server"] = None
    assert ttft_parts(records).dropped == {"no server times": 1}
    none = ttft_parts({**r, "server": None} for r in records)
    assert none.status == "empty"
    assert "--enable-per-request-metrics" in none.note
    assert ttft_parts([]).status == "empty"


def test_server_times_longer_than_the_clients_are_not_believed() -> None:
    assert split_ttft(probe("on", "warm", 100, 10.0, server={"ttft_ms": 50.0, "queue_ms": 0.0})) is None


def test_one_length_has_parts_but_no_slope() -> None:
    found = ttft_parts(r for r in warm_requests() if r["prompt_tokens"] == 353)
    assert len(found.by_length) == 1
    assert found.largest_slope is None
    assert found.note
