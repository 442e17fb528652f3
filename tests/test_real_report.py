"""The whole way once against real vLLM: two servers, two notebooks, the article, nothing left running."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest
import yaml

from prefixkit import paths, run
from prefixkit.records import last, probes, read_records

EXPERIMENTS = {
    "warmup_requests": 1,
    "switch": {"max_tokens": 2},
    "length": {"lengths": [256, 1024], "short_lengths": [], "repeats": 2},
}


@pytest.mark.real
def test_a_small_report_from_real_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "OUT", tmp_path)
    profile = tmp_path / "small.yaml"
    whole = yaml.safe_load((paths.PARAMS / "cpu.yaml").read_text())
    profile.write_text(yaml.safe_dump({**whole, "experiments": EXPERIMENTS}))
    out = tmp_path / "small"
    before = {p.pid for p in psutil.process_iter()}

    assert run.report(str(profile), ["off", "on", "cloud"]) == 0

    for arm, caching in (("off", False), ("on", True)):
        record = last(read_records(out / f"{arm}.jsonl"), "run")
        assert record is not None
        assert record["enable_prefix_caching"] is caching
        assert record["vllm"].startswith("0.")
    assert {p["cached_tokens"] for p in probes(read_records(out / "off.jsonl"))} == {0}
    claims = json.loads((out / "claims.json").read_text())
    assert claims["hit_rate_switch"]["value"] >= 0.95
    assert claims["hit_rate_switch_all"]["value"] <= 7 / 8
    assert claims["ttft_reduction_longest"]["value"] > 0
    assert "TAOTOKEN_API_KEY" in (out / "report.html").read_text()
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")
    left = [p for p in psutil.process_iter() if p.pid not in before and "vllm" in " ".join(p.cmdline()).lower()]
    assert left == []

    said: list[str] = []
    assert run.report(str(profile), ["off", "on", "cloud"], said.append) == 0
    assert not any("measuring" in line for line in said)
    assert any("up to date" in line for line in said)
