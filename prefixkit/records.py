"""Record files: one JSON object a line, appended as it is measured, never lost.

Kinds (`record`): run, probe, cell, counters, sample, skip, calibration, end. Readers ignore keys that they do not know.
Schema history: 1, the first.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefixkit.errors import RecordsError

SCHEMA = 1
Record = dict[str, Any]


def now() -> str:
    """Return the time in UTC, ISO 8601 with milliseconds."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """Return a moment of UTC as ISO 8601 with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_records(path: str | Path) -> list[Record]:
    """Return the records of a `.jsonl` or `.jsonl.gz` file.

    A last record that was cut off by a kill is left out; any other line that is not a JSON object raises RecordsError.
    """
    path = Path(path)
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = raw.decode("utf-8-sig", errors="replace").split("\n")
    except (OSError, EOFError, zlib.error) as error:
        raise RecordsError(
            f"{path}: cannot be read ({error})", "give a record file, ARM.jsonl or ARM.jsonl.gz"
        ) from None
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # ValueError also where a number has thousands of digits
            if number == len(lines) and line.startswith("{"):
                break
            raise RecordsError(f"{path}: line {number} is not JSON", "delete or mend that line") from None
        if not isinstance(record, dict):
            raise RecordsError(f"{path}: line {number} is not a JSON object", "delete or mend that line")
        records.append(record)
    return records


class RecordWriter:
    """Append records to one arm's file; each line is one write, so a kill loses at most the line under way."""

    def __init__(self, path: str | Path, *, arm: str, profile: str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._common = {"schema": SCHEMA, "arm": arm, "profile": profile}
        self._drop_torn_line()
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def append(self, record: str, **fields: Any) -> Record:
        """Write one record of kind `record` and return it as written."""
        entry = {"record": record, **self._common, **fields}
        entry.setdefault("at", now())
        os.write(self._file, (json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n").encode())
        return entry

    def close(self) -> None:
        """Close the file; appending afterwards is an error."""
        os.close(self._file)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drop_torn_line(self) -> None:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            with self.path.open("r+b") as file:
                file.truncate(data.rfind(b"\n") + 1)


def rewrite(path: Path, change: Callable[[Record], Record]) -> None:
    """Apply `change` to every record of `path`, atomically: a kill leaves the old file or the new one."""
    text = "".join(json.dumps(change(r), ensure_ascii=False) + "\n" for r in read_records(path))
    part = path.with_suffix(path.suffix + ".part")
    part.write_text(text, "utf-8")
    part.replace(path)


def supersede_unfinished(path: Path, finished: set[str]) -> int:
    """Mark the probes of cells that are not in `finished` as superseded; return how many were."""
    count = 0

    def mark(record: Record) -> Record:
        nonlocal count
        measured = record.get("record") == "probe" and record.get("phase") != "warmup"
        if measured and not record.get("superseded") and record.get("cell") not in finished:
            count += 1
            return {**record, "superseded": True}
        return record

    if path.exists():
        rewrite(path, mark)
    return count


def finished_cells(records: Iterable[Record]) -> set[str]:
    """Return the cells whose end was recorded."""
    return {r["cell"] for r in records if r.get("record") == "cell"}


def probes(records: Iterable[Record], experiment: str | None = None, phase: str | None = None) -> Iterator[Record]:
    """Yield the probes that count: of this experiment and phase, not superseded (failed ones are still among them)."""
    for r in records:
        if r.get("record") != "probe" or r.get("superseded"):
            continue
        if (experiment is None or r.get("experiment") == experiment) and (phase is None or r.get("phase") == phase):
            yield r


def last(records: Iterable[Record], kind: str) -> Record | None:
    """Return the last record of a kind, or None."""
    found = None
    for r in records:
        if r.get("record") == kind:
            found = r
    return found


def archive(path: Path, records: list[Record]) -> Path:
    """Rename a file whose parameters no longer fit to `ARM.STARTED_AT.jsonl`; return its new path."""
    run = last(records, "run") or (records[0] if records else {})
    stamp = str(run.get("started_at") or run.get("at") or now()).replace(":", "").replace(".", "")
    target = path.with_name(f"{path.stem}.{stamp}{path.suffix}")
    number = 2
    while target.exists():
        target = path.with_name(f"{path.stem}.{stamp}-{number}{path.suffix}")
        number += 1
    path.replace(target)
    return target
