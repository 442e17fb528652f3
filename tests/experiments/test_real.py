from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from prefixkit.records import Record
from prefixkit.server import Server
from tests.experiments.support import measure, of

EXPERIMENTS = {
    "warmup_requests": 1,
    "switch": {"max_tokens": 2},
    "length": {"lengths": [200], "short_lengths": [40], "repeats": 2},
}


def attached(folder: Path, server: Server) -> Path:
    """Write a profile that measures a running server."""
    path = folder / "attached.yaml"
    content: dict[str, Any] = {
        "model": {"name": server.model},
        "server": {"launcher": "url", "url": server.url},
        "experiments": EXPERIMENTS,
    }
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def probes(records: list[Record], experiment: str) -> list[Record]:
    return [p for p in of(records, "probe", experiment=experiment) if p["phase"] != "warmup"]


@pytest.mark.real
def test_on_the_real_server_counters_replies_and_arithmetic_agree(tmp_path: Path, real_on: Server) -> None:
    records = measure(attached(tmp_path, real_on), "on", tmp_path / "out", process=True)
    assert records[-1]["status"] == "ok"
    (later,) = of(records, "counters", experiment="switch", scope="requests 2-8")
    assert later["hit_rate"] >= 0.95
    for counters in of(records, "counters"):
        assert counters["reconciliation"]["agree"] is True
        assert counters["predicted_tokens"] == counters["hits"]
    first = next(p for p in probes(records, "switch") if p["condition"]["question"] == 1)
    assert (first["phase"], first["cached_tokens"]) == ("cold", 0)
    assert abs(first["prompt_tokens"] - first["target_tokens"]) < 40
    for probe in probes(records, "length"):
        whole = (probe["prompt_tokens"] - 1) // 32 * 32
        assert probe["cached_tokens"] == (whole if probe["phase"] == "warm" else 0)
