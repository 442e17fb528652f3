"""What the client adds, at the sizes and concurrencies of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.errors import ProbeError
from prefixkit.experiments import overhead
from prefixkit.experiments.overhead import Timed, median_ttft, points
from prefixkit.probe.calibrate import Calibration, calibrate
from prefixkit.records import Record, read_records
from tests.experiments.support import measure, of, profile, start

LOAD = {"concurrency": [1, 3], "rates_per_s": [50.0], "requests": 6, "prefixes": 2, "prefix_tokens": 100}


def made(experiment: str, phase: str, prompt_bytes: int, concurrency: int, ttft_ms: float) -> Timed:
    return Timed(experiment, phase, prompt_bytes, concurrency, ttft_ms)


def test_a_run_is_calibrated_at_its_smallest_and_longest_prompt_and_at_each_concurrency(tmp_path: Path) -> None:
    records = measure(profile(tmp_path, switch=False, load=LOAD), "on", tmp_path / "out")
    found = of(records, "calibration")
    assert sorted(c["concurrency"] for c in found) == [1, 1, 3]
    alone = sorted(c["prompt_bytes"] for c in found if c["concurrency"] == 1)
    assert 32 * 2 < alone[0] < 192 * 2 < alone[1]
    assert all(c["ttft_p50_ms"] > 0 and isinstance(c["bottleneck"], bool) for c in found)
    assert records[-1]["record"] == "end"


def test_lengths_alone_decide_the_sizes_where_they_were_measured() -> None:
    sent = [made("switch", "warm", 9000, 1, 5), made("length", "cold", 100, 1, 5), made("length", "warm", 700, 1, 5)]
    assert points(sent) == [(700, 1), (100, 1)]
    assert points(sent[:1]) == [(9000, 1)]
    assert points([*sent, made("load", "load", 300, 4, 9)]) == [(700, 1), (300, 4), (100, 1)]


def test_the_client_is_held_against_the_fastest_phase_of_such_requests() -> None:
    sent = [made("length", "cold", 700, 1, 90), made("length", "warm", 710, 1, 9), made("length", "warm", 100, 1, 2)]
    assert median_ttft(sent, 710, 1) == 9


def test_a_client_that_was_the_bottleneck_is_recorded_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(overhead, "calibrate", lambda size, n, **_: Calibration(size, n, 20, 1e6, 2e6))
    said: list[str] = []
    records = measure_saying(said, tmp_path)
    assert all(c["bottleneck"] for c in of(records, "calibration"))
    assert any("the client was the bottleneck" in line for line in said)


def test_a_machine_on_which_calibration_fails_keeps_its_measurement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> Calibration:
        raise ProbeError("the calibration server did not start", "is 127.0.0.1 blocked?")

    monkeypatch.setattr(overhead, "calibrate", fail)
    said: list[str] = []
    records = measure_saying(said, tmp_path)
    assert (of(records, "calibration"), records[-1]["status"]) == ([], "ok")
    assert any("did not start" in line for line in said)


def test_a_real_calibration_of_a_run_is_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(overhead, "calibrate", calibrate)
    found = of(measure_saying([], tmp_path), "calibration")
    assert len(found) == 2
    assert all(0 < c["overhead_p50_ms"] <= c["overhead_p99_ms"] and c["n"] == 20 for c in found)


def measure_saying(said: list[str], folder: Path) -> list[Record]:
    with start(profile(folder, switch=False), "off", folder / "out") as session:
        session.progress = said.append
        session.run_all()
    return read_records(folder / "out" / "off.jsonl")
