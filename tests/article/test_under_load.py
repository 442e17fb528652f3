"""The load table where every request of a step raced for a cold prefix."""

from __future__ import annotations

from pathlib import Path

from prefixkit.article.under_load import SECTION
from tests.article.test_sections import context
from tests.fakes import records
from tests.fakes.more_records import load


def test_a_step_in_which_every_request_raced_says_so(tmp_path: Path) -> None:
    arms = [records.local(name, (load,)) for name in ("off", "on")]
    probes = [r for arm in arms for r in arm.records if r["record"] == "probe" and r["phase"] == "load"]
    step = probes[0]["cell"]
    for r in probes:
        r["condition"]["first_arrival"] = r["cell"] == step
    ctx = context(records.write(tmp_path, *arms))
    table = SECTION.tables["load"](ctx)
    assert table
    head = {name: place for place, name in enumerate(table.heads)}
    first = table.rows[0]
    assert first[head["n"]] == "0"
    assert first[head["ttft_p50"]] == "–"
    assert first[head["racing_n"]] not in ("", "0")
    assert first[head["racing"]]
    assert "Where every request raced (1 at once)" in SECTION.sentences["load"](ctx)


def test_columns_without_anything_are_left_out(tmp_path: Path) -> None:
    arms = [records.local(name, (load,)) for name in ("off", "on")]
    table = SECTION.tables["load"](context(records.write(tmp_path, *arms)))
    assert table
    assert all(any(row[i] not in ("", "–") for row in table.rows) for i in range(len(table.heads)))
