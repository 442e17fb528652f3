from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments import arm_state
from prefixkit.params import load_arm, params_hash
from prefixkit.records import RecordWriter
from tests.experiments.support import profile


def written(folder: Path, path: Path, arm: str, *, digest: str | None = None, end: str | None = None) -> None:
    with RecordWriter(folder / f"{arm}.jsonl", arm=arm, profile="small") as writer:
        writer.append("run", params_hash=digest or params_hash(load_arm(path, arm)))
        if end:
            writer.append("end", status=end, reason="why")


@pytest.mark.parametrize(
    ("end", "state", "needs_run"),
    [
        ("ok", "complete", False),
        (None, "partial", True),
        ("interrupted", "partial", True),
        ("failed", "partial", True),
        ("paused", "partial", True),
        ("refused", "refused", True),
    ],
)
def test_how_a_run_ended_decides_whether_it_is_continued(
    tmp_path: Path, end: str | None, state: str, needs_run: bool
) -> None:
    path = profile(tmp_path)
    written(tmp_path, path, "on", end=end)
    found = arm_state(tmp_path, path, "on")
    assert (found.name, found.needs_run, found.refused) == (state, needs_run, state == "refused")


def test_an_arm_without_records_is_missing(tmp_path: Path) -> None:
    assert arm_state(tmp_path, profile(tmp_path), "off").name == "missing"


def test_other_parameters_make_an_arm_stale(tmp_path: Path) -> None:
    path = profile(tmp_path)
    written(tmp_path, path, "off", end="ok")
    assert arm_state(tmp_path, profile(tmp_path, switch=False), "off").name == "stale"


def test_the_report_section_does_not_make_an_arm_stale(tmp_path: Path) -> None:
    path = profile(tmp_path)
    written(tmp_path, path, "off", end="ok")
    path.write_text(path.read_text() + "report: {lang: zh}\n")
    assert arm_state(tmp_path, path, "off").name == "complete"


def test_a_skip_for_a_missing_key_is_tried_again_once_the_key_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(tmp_path)
    written(tmp_path, path, "cloud", end="skipped")
    monkeypatch.delenv("TAOTOKEN_API_KEY", raising=False)
    monkeypatch.setenv("TAOTOKEN_BASE_URL", "http://127.0.0.1:1")
    skipped = arm_state(tmp_path, path, "cloud")
    assert (skipped.name, skipped.needs_run) == ("skipped", False)
    assert "TAOTOKEN_API_KEY" in skipped.message
    monkeypatch.setenv("TAOTOKEN_API_KEY", "a-key")
    assert arm_state(tmp_path, path, "cloud").needs_run
