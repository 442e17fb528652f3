"""The intervals hold what they promise, on a few hundred made-up runs; the full table is in tests/bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bench import stat_stopping
from tests.bench.stat_coverage import ALARMS, REGIMES, coverage

SETS = 120
TABLE = Path(__file__).parents[1] / "bench" / "stat_coverage.json"


@pytest.mark.parametrize("regime", ["noise growing with length", "proportional drift (40 % over the run)"])
def test_intervals_cover_the_truth(regime: str) -> None:
    found = coverage(regime, SETS)
    for name in ("slope off", "intercept off", "slope reduction"):
        assert found[name]["coverage"] >= 0.88
    assert found["runs differ (either)"]["alarm"] <= 0.12
    assert found["slope off"]["width"] < 1.6


def test_the_committed_table_keeps_the_promise() -> None:
    table = json.loads(TABLE.read_text("utf-8"))
    assert table["sets"] >= 2000
    for regime, (low, high) in REGIMES.items():
        for name in ("slope off", "slope on", "intercept off", "intercept on", "slope reduction"):
            assert low <= table["regimes"][regime][name]["coverage"] <= high
        for alarm in ALARMS[:3]:
            assert table["regimes"][regime][alarm]["alarm"] <= 0.06
    for regime, (low, high) in stat_stopping.REGIMES.items():
        for name in stat_stopping.QUANTITIES:
            found = table["stopping"][regime].get(name)
            assert found is None or low <= found["coverage"] <= high
        assert table["stopping"][regime]["slope reduction"]
