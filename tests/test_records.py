"""Record files: nothing written is lost, and what was cut off or repeated is told apart."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from prefixkit.errors import RecordsError
from prefixkit.records import (
    RecordWriter,
    archive,
    finished_cells,
    last,
    probes,
    read_records,
    supersede_unfinished,
)


def writer(path: Path) -> RecordWriter:
    return RecordWriter(path, arm="on", profile="cpu")


def test_a_record_is_readable_the_moment_it_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "new" / "on.jsonl"
    with writer(path) as out:
        out.append("probe", experiment="length", ttft_ms=1.5)
        record = read_records(path)[0]
    assert (record["record"], record["arm"], record["schema"], record["ttft_ms"]) == ("probe", "on", 1, 1.5)


def test_a_line_cut_off_by_a_kill_is_dropped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    with writer(path) as out:
        out.append("probe", n=1)
    with path.open("ab") as file:
        file.write(b'{"record": "probe", "n": 2, "ttf')
    assert [r["n"] for r in read_records(path)] == [1]
    with writer(path) as out:
        out.append("probe", n=3)
    assert [r["n"] for r in read_records(path)] == [1, 3]


def test_a_broken_line_in_the_middle_is_an_error_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    path.write_text('{"record": "run"}\nnot json\n{"record": "end"}\n')
    with pytest.raises(RecordsError, match="line 2 is not JSON"):
        read_records(path)


def test_gzipped_records_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"record": "run"}\n'))
    assert read_records(path) == [{"record": "run"}]
    whole = gzip.compress(b'{"record": "run"}\n')
    for broken in (b"not gzip", whole[:-9], whole[:10] + b"\xff" * 40):
        path.write_bytes(broken)
        with pytest.raises(RecordsError, match="cannot be read"):
            read_records(path)


@pytest.mark.parametrize("line", ["9" * 5000, "[" * 100_000, '{"n": ' + "9" * 5000 + "}"], ids=["digits", "deep", "n"])
def test_what_json_cannot_hold_is_an_error_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "on.jsonl"
    path.write_text(line + '\n{"record": "end"}\n')
    with pytest.raises(RecordsError, match="line 1 is not JSON"):
        read_records(path)


def test_a_file_that_holds_something_else_is_no_record_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    path.write_text("model: {name: m}")
    with pytest.raises(RecordsError, match="line 1 is not JSON"):
        read_records(path)


def test_a_mark_of_byte_order_is_no_part_of_the_records(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"record": "run"}\n')
    assert read_records(path) == [{"record": "run"}]


def test_no_value_that_json_lacks_is_ever_written(tmp_path: Path) -> None:
    with writer(tmp_path / "on.jsonl") as out, pytest.raises(ValueError, match="not JSON compliant"):
        out.append("probe", ttft_ms=float("nan"))


def test_probes_of_an_unfinished_cell_stay_but_no_longer_count(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    with writer(path) as out:
        out.append("probe", cell="a", experiment="length", phase="cold")
        out.append("cell", cell="a")
        out.append("probe", cell="b", experiment="length", phase="cold")
        out.append("probe", cell=None, experiment="length", phase="warmup")
    assert supersede_unfinished(path, finished_cells(read_records(path))) == 1
    records = read_records(path)
    assert len(records) == 4
    assert [r["cell"] for r in probes(records, "length", "cold")] == ["a"]
    assert not any(r.get("superseded") for r in records if r.get("phase") == "warmup")
    assert supersede_unfinished(path, finished_cells(records)) == 0


def test_superseding_does_nothing_to_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert supersede_unfinished(tmp_path / "on.jsonl", set()) == 0


def test_an_archived_file_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    targets = set()
    for _ in range(3):
        with writer(path) as out:
            out.append("run", started_at="2026-01-02T03:04:05.678Z")
        targets.add(archive(path, read_records(path)))
    assert len(targets) == 3
    assert all(t.exists() and t.name.startswith("on.2026-01-02T030405") for t in targets)
    assert not path.exists()


def test_the_last_record_of_a_kind_is_the_one_in_force(tmp_path: Path) -> None:
    path = tmp_path / "on.jsonl"
    with writer(path) as out:
        out.append("run", n=1)
        out.append("run", n=2)
    found = last(read_records(path), "run")
    assert found is not None
    assert found["n"] == 2
    assert last([], "run") is None
