"""One experiment alone, for a notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from prefixkit import paths
from prefixkit.experiments.opening import open_session
from prefixkit.experiments.registry import EXPERIMENTS, belongs
from prefixkit.params import find, load_params, profile_name
from prefixkit.records import Record, read_records


def run_one(
    name: str,
    *,
    profile: str | Path = "cpu",
    arm: str = "on",
    out: str | Path | None = None,
    progress: Callable[[str], object] = print,
    **changes: Any,
) -> list[Record]:
    """Run one experiment on one arm and return all records of the folder's arm; `changes` are parameters of it.

    The folder is `report/out/PROFILE-NAME` unless given. What is measured there already is not measured again.

    >>> records = run_one("mutation", profile="cpu", arm="on", repeats=1)  # doctest: +SKIP
    """
    belongs(name, arm)
    folder = paths.OUT / f"{profile_name(profile)}-{name}" if out is None else Path(out)
    with open_session(_alone(name, profile, folder, changes), arm, folder, progress=progress) as session:
        session.run_all()
    return read_records(folder / f"{arm}.jsonl")


def _alone(name: str, profile: str | Path, folder: Path, changes: dict[str, Any]) -> Path:
    """Write the profile with every other experiment switched off; return the file."""
    content = yaml.safe_load(find(profile).read_text("utf-8"))
    given = dict(content.get("experiments") or {})
    others: dict[str, Any] = {other: False for other in EXPERIMENTS if other not in (name, "cloud")}
    if name != "cloud":
        others[name] = {**(given.get(name) or {}), **changes}
    content["experiments"] = {**given, **others}
    load_params(profile, **{key: content[key] for key in ("model", "experiments")})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{profile_name(profile)}-{name}.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=True, sort_keys=False), "utf-8")
    return path
