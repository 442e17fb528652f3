"""The records of all arms of one folder: everything that the article is made from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixkit import paths
from prefixkit.errors import RecordsError
from prefixkit.params import ARMS
from prefixkit.records import Record, last, probes, read_records

ORDER = ("off", "on", "cloud")
SETTINGS = "report.json"
EXPERIMENTS = (
    "switch", "length", "conversation", "load", "affinity", "mutation", "workload", "eviction", "blocks",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arm:
    """The records of one arm."""

    name: str
    records: tuple[Record, ...]

    def probes(self, experiment: str | None = None, *phases: str) -> list[Record]:
        """Return the probes that answered, of these phases; without phases all but warm-ups."""
        return [
            r
            for r in probes(self.records, experiment)
            if not r.get("error")
            and r.get("ttft_ms") is not None
            and (r.get("phase") in phases if phases else r.get("phase") != "warmup")
        ]

    def of(self, kind: str, experiment: str | None = None) -> list[Record]:
        """Return the records of a kind, of one experiment where it is given."""
        return [
            r
            for r in self.records
            if r.get("record") == kind and (experiment is None or r.get("experiment") == experiment)
        ]

    @property
    def runs(self) -> list[Record]:
        """Return the starts of the arm's own server; experiments with servers of their own are left out."""
        return [r for r in self.of("run") if not r.get("experiment")]

    @property
    def run(self) -> Record:
        """Return the last start of the arm's own server, or an empty record."""
        return self.runs[-1] if self.runs else {}

    @property
    def status(self) -> str:
        """Return how the arm ended: the status of its last `end` record, or `unfinished`."""
        end = last(self.records, "end")
        return str((end or {}).get("status") or "unfinished")

    @property
    def skips(self) -> list[Record]:
        """Return what was skipped, with reasons; a skip that a later run made good is left out."""
        found: dict[str, Record] = {}
        for r in self.records:
            if r.get("record") == "skip":
                found[str(r.get("experiment") or "")] = r
            elif r.get("record") == "probe" and r.get("phase") != "warmup":
                found.pop("", None)
                found.pop(str(r.get("experiment")), None)
        return list(found.values())


@dataclass(frozen=True, slots=True)
class Settings:
    """How the article is made; changing it measures nothing."""

    lang: str = "en"
    title: str | None = None
    show_prompts: bool = False
    control_margin: float = 0.05
    compare: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """All arms of one profile; hashed by identity, so that what is costly is computed once for each."""

    folder: Path
    arms: Mapping[str, Arm]
    settings: Settings

    def arm(self, name: str) -> Arm:
        """Return an arm; one that was not run is empty."""
        return self.arms.get(name) or Arm(name, ())

    def probes(self, arm: str, experiment: str | None = None, *phases: str) -> list[Record]:
        """Return the answered probes of an arm."""
        return self.arm(arm).probes(experiment, *phases)

    @property
    def records(self) -> list[Record]:
        """Return the records of all arms."""
        return [r for arm in self.arms.values() for r in arm.records]

    @property
    def params(self) -> Mapping[str, Any]:
        """Return the parameters of the last run of a local arm, or an empty mapping."""
        for name in ("on", "off", "cloud"):
            if params := self.arm(name).run.get("params"):
                return dict(params)
        return {}

    @property
    def profile(self) -> str:
        """Return the profile's name."""
        for r in self.records:
            if r.get("profile"):
                return str(r["profile"])
        return self.folder.name


def resolve(folder: str | Path) -> Path:
    """Return a folder given relative to the project root or to here."""
    path = Path(folder).expanduser()
    return path if path.is_absolute() or path.is_dir() else paths.ROOT / path


def write_settings(folder: Path, report: Mapping[str, Any]) -> Path:
    """Store the `report` parameters beside the records, so that the article depends on this folder alone."""
    path = folder / SETTINGS
    known = {key: report[key] for key in Settings.__slots__ if key in report}
    path.write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return path


def _stored(folder: Path) -> dict[str, Any]:
    try:
        stored = json.loads((folder / SETTINGS).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RecordsError(f"{folder / SETTINGS}: cannot be read ({error})", "delete it, or mend it") from None
    return stored if isinstance(stored, dict) else {}


def load(folder: str | Path) -> Data:
    """Return the records of `ARM.jsonl` or `ARM.jsonl.gz` in `folder`; raises RecordsError where there is none.

    How the article is made comes from report.json beside them, else from the parameters in the records.
    """
    path = resolve(folder)
    arms = {name: Arm(name, tuple(read_records(file))) for name, file in _files(path)}
    if not arms:
        raise RecordsError(f"{path}: no records of an arm ({', '.join(ARMS)})", "run `make report` first")
    data = Data(path, arms, Settings())
    stored = {**(data.params.get("report") or {}), **_stored(path)}
    known = {key: value for key, value in stored.items() if key in Settings.__slots__}
    return Data(path, arms, Settings(**known))


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for name in ORDER:
        for suffix in (".jsonl", ".jsonl.gz"):
            if (file := folder / f"{name}{suffix}").is_file():
                yield name, file
                break
