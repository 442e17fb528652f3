"""What a session writes down: probes in their cells, skips, and how far it has come."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefixkit.probe import Probe
from prefixkit.records import Record, RecordWriter, finished_cells, read_records, supersede_unfinished

WARMUP = "warmup"


class Ledger:
    """The record file of one arm, continued where an earlier run stopped."""

    def __init__(self, path: Path, *, arm: str, profile: str, progress: Callable[[str], object]) -> None:
        self.path, self.arm, self.profile, self.progress = path, arm, profile, progress
        # Salts and heads of texts are drawn from it, so that no run finds another's texts in a warm server.
        self.nonce = secrets.token_hex(8)
        self.records: list[Record] = read_records(path) if path.exists() else []
        self._finished = finished_cells(self.records)
        self._order = max((int(r.get("order") or 0) for r in self.records if r.get("record") == "probe"), default=0)
        self._writer: RecordWriter | None = None
        self._cell: str | None = None
        self._done: Counter[str] = Counter()
        self._expected: dict[str, int] = {}

    @property
    def writer(self) -> RecordWriter:
        """The arm's record file, open for appending."""
        if self._writer is None:
            self._writer = RecordWriter(self.path, arm=self.arm, profile=self.profile)
        return self._writer

    def append(self, record: str, **fields: Any) -> Record:
        """Write a record and keep it."""
        entry = self.writer.append(record, **fields)
        self.records.append(entry)
        return entry

    def skip(self, experiment: str | None, reason: str, **fields: Any) -> None:
        """Record once that something is not measured, and why."""
        same = [r for r in self.records if r.get("record") == "skip" and r.get("experiment") == experiment]
        if not any(r.get("reason") == reason and fields.items() <= r.items() for r in same):
            self.append("skip", experiment=experiment, reason=reason, **fields)
        self.progress(f"{experiment or self.arm}: skipped, {reason}")

    def fresh_salt(self) -> str:
        """Return a cache salt that no request has had."""
        return f"{self.nonce}-{secrets.token_hex(8)}"

    def is_finished(self, cell: str) -> bool:
        """Return whether a cell was measured, now or in an earlier run."""
        return cell in self._finished

    @contextmanager
    def cell(self, name: str) -> Iterator[bool]:
        """Enter one unit of resumption; yields False when it was measured before, else records its end."""
        if self.is_finished(name):
            yield False
            return
        self._supersede(name)
        self._cell = name
        try:
            yield True
        finally:
            self._cell = None
        self.append("cell", cell=name)
        self._finished.add(name)

    def _supersede(self, cell: str) -> None:
        """Give up what an earlier attempt at this cell left, when this same session was interrupted within it."""
        if not any(r.get("record") == "probe" and r.get("cell") == cell and not r["superseded"] for r in self.records):
            return
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        supersede_unfinished(self.path, self._finished)
        self.records = read_records(self.path)

    def expect(self, experiment: str, probes: int) -> None:
        """Say how many requests an experiment is going to make, for the progress lines."""
        self._expected[experiment] = probes
        self._done[experiment] = 0

    def write_probe(
        self, probe: Probe, experiment: str, phase: str, condition: dict[str, Any], target_tokens: int | None
    ) -> Record:
        """Write a request's record and say how far the experiment is."""
        self._order += 1
        fields = probe.record()
        cached = fields["cached_tokens"]
        if phase in ("cold", "control") and cached and self.arm != "cloud":
            fields["warnings"].append(f"a {phase} request found {cached} tokens in the cache")
        entry = self.append(
            "probe",
            cell=self._cell or f"{phase}/{experiment}",
            experiment=experiment,
            phase=phase,
            order=self._order,
            condition=condition,
            target_tokens=target_tokens,
            superseded=False,
            **fields,
        )
        if phase != WARMUP:
            self._done[experiment] += 1
            total = self._expected.get(experiment)
            self.progress(f"{experiment} {self._done[experiment]}{f'/{total}' if total else ''} probes")
        return entry
