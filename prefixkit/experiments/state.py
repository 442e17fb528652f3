"""Whether an arm must be measured: what its record file holds against its parameters of today."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prefixkit.params import Params, load_arm, params_hash
from prefixkit.records import Record, last, read_records

Name = Literal["complete", "partial", "stale", "missing", "skipped", "refused"]


@dataclass(frozen=True, slots=True)
class ArmState:
    """The state of one arm's records and a sentence on it.

    `skipped`: a key was missing and still is. `refused`: the server was not what the arm says, when last asked.
    """

    name: Name
    message: str

    @property
    def needs_run(self) -> bool:
        """Whether measuring would change anything."""
        return self.name not in ("complete", "skipped")

    @property
    def refused(self) -> bool:
        """Whether the last run was refused."""
        return self.name == "refused"


def arm_state(out: str | Path, profile: str | Path, arm: str) -> ArmState:
    """Return the state of an arm of `profile` in the folder `out`."""
    path = Path(out) / f"{Path(arm).stem}.jsonl"
    return records_state(read_records(path) if path.exists() else [], load_arm(profile, arm))


def records_state(records: list[Record], params: Params) -> ArmState:
    """Return the state of records that were read."""
    run = last(records, "run")
    if run is None:
        return ArmState("missing", "not measured yet") if not records else ArmState("stale", "holds no run record")
    if run.get("params_hash") != params_hash(params):
        return ArmState("stale", "the parameters have changed since it was measured")
    end = last(records, "end") or {}
    status, reason = end.get("status"), end.get("reason") or ""
    if status == "ok":
        return ArmState("complete", "already measured with these parameters")
    if status == "skipped" and (name := missing_variable(params)):
        return ArmState("skipped", f"skipped, {name} is not set")
    if status == "refused":
        return ArmState("refused", f"refused: {reason}")
    return ArmState("partial", f"measured in part ({reason or status or 'interrupted'})")


def missing_variable(params: Params) -> str | None:
    """Return the first variable of the cloud arm that this process lacks."""
    for name in (params.cloud.api_key_env, params.cloud.base_url_env):
        if not os.environ.get(name, "").strip():
            return name
    return None
