"""A small profile served by the fake vLLM, and a session on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from prefixkit import paths
from prefixkit.experiments import Session, open_session
from prefixkit.records import Record, read_records

SMALL = {
    "language": "en",
    "warmup_requests": 1,
    "switch": {"system_tokens": 200, "max_tokens": 4},
    "length": {"lengths": [96, 192], "short_lengths": [32], "repeats": 2},
}


def profile(folder: Path, *, engine_args: dict[str, Any] | None = None, **experiments: Any) -> Path:
    """Write a profile that starts the fake as a process; return its path."""
    model = folder / "model"
    model.mkdir(exist_ok=True)
    path = folder / "small.yaml"
    content = {
        "model": {"name": "fake", "path": str(model)},
        "server": {
            "command": [sys.executable, "-m", "tests.fakes.vllm"],
            "env": {"PYTHONPATH": str(paths.ROOT)},
            "engine_args": {"block_size": 16, "enable_prompt_tokens_details": True, **(engine_args or {})},
        },
        "experiments": {**SMALL, **experiments},
    }
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def measure(profile_path: Path, arm: str, out: Path, **options: Any) -> list[Record]:
    """Measure an arm completely and return its records."""
    with open_session(profile_path, arm, out, progress=lambda _: None, **options) as session:
        session.run_all()
    return read_records(out / f"{arm}.jsonl")


def start(profile_path: Path, arm: str, out: Path, **options: Any) -> Session:
    """Open a session that says nothing."""
    return open_session(profile_path, arm, out, progress=lambda _: None, **options)


def of(records: list[Record], kind: str, **fields: Any) -> list[Record]:
    """Return the records of a kind with these fields."""
    return [r for r in records if r["record"] == kind and fields.items() <= r.items()]
