"""How to measure again: the commands that the records say were used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prefixkit.article.appendix import SECTION as APPENDIX
from prefixkit.article.rerun import SECTION
from prefixkit.paths import ROOT
from tests.article.test_sections import context
from tests.fakes import records


def interleaved(folder: Path, rounds: int) -> Path:
    """Write both arms as three visits of `rounds` rounds to servers held open leave them."""
    for name in ("off", "on"):
        arm = records.Arm(name, records.World())
        for visit in range(3):
            records.begin(arm, attached=True, executable=f"{ROOT}/.venv/bin/python", started_at=f"2026-03-0{visit + 1}")
            first = len(arm.records)
            records.length(arm, repeats=rounds)
            for r in arm.records[first:]:
                if r["record"] == "probe" and r["phase"] != "warmup":
                    r["condition"] = {**r["condition"], "round": r["condition"]["round"] + visit * rounds}
        arm.append("end", status="ok", reason="")
        records.write(folder, arm)
    return folder


def test_one_arm_after_the_other_is_make_report(case: Callable[[str], Path]) -> None:
    text = SECTION.sentences["rerun"](context(case("core")))
    assert "make report PROFILE=cpu" in text
    assert "interleave" not in text


def test_arms_in_turn_are_interleave_with_its_rounds(tmp_path: Path) -> None:
    ctx = context(interleaved(tmp_path, rounds=2))
    text = SECTION.sentences["rerun"](ctx)
    assert ".venv/bin/python -m prefixkit interleave --profile cpu --rounds 2\nmake report PROFILE=cpu" in text
    table = APPENDIX.tables["provenance"](ctx)
    assert table
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["visits to the running server"] == ("3", "3")
    assert rows["started (UTC)"] == ("2026-03-01", "2026-03-01")
    assert rows["its executable"] == ("./.venv/bin/python", "./.venv/bin/python")


def test_one_round_a_visit_needs_no_option(tmp_path: Path) -> None:
    text = SECTION.sentences["rerun"](context(interleaved(tmp_path, rounds=1)))
    assert "interleave --profile cpu\n" in text


def test_without_a_run_the_commit_is_unknown(case: Callable[[str], Path]) -> None:
    assert "do not name the commit" in SECTION.sentences["rerun"](context(case("only_cloud")))
