"""A small profile served by the fake vLLM, and sessions on it; in this process unless `process=True`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from prefixkit import paths
from prefixkit.errors import ServerError
from prefixkit.experiments import Session, open_session, opening, own_server
from prefixkit.metrics import cache_config, fetch
from prefixkit.params import Params
from prefixkit.records import Record, read_records
from prefixkit.server import Effective, Server
from tests.fakes.settings import settings_from
from tests.fakes.vllm import VERSION, FakeVllm

SMALL = {
    "language": "en",
    "warmup_requests": 1,
    "switch": {"system_tokens": 200, "max_tokens": 4},
    "length": {"lengths": [96, 192], "short_lengths": [32], "repeats": 2},
}


def profile(folder: Path, *, engine_args: dict[str, Any] | None = None, **experiments: Any) -> Path:
    """Write a profile that is served by the fake; return its path."""
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


@dataclass(eq=False)
class ServedHere(Server):
    """A server in a thread of this process."""

    fake: FakeVllm | None = None

    def stop(self) -> None:
        """End it; harmless when repeated."""
        if self.fake is not None:
            self.fake.__exit__()
        self.fake = None


def serve_here(params: Params, **__: Any) -> ServedHere:
    """Do what `serve` does, without a process: the fake gets the flags that vLLM would get."""
    argv = ["--model", params.model.name]
    argv.append("--enable-prefix-caching" if params.enable_prefix_caching else "--no-enable-prefix-caching")
    assert isinstance(params.server.engine_args, dict)
    for name, value in params.server.engine_args.items():
        flag = name.replace("_", "-")
        argv += [f"--no-{flag}"] if value is False else [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
    settings, _ = settings_from(argv)
    if settings.blocks <= 2:
        raise ServerError("vLLM did not start: no room for a prompt in the KV cache", "more blocks")
    fake = FakeVllm(settings).__enter__()
    config = cache_config(fetch(fake.metrics_url))
    effective = Effective(
        config.enable_prefix_caching, config.block_size, config.kv_capacity_tokens, "bfloat16",
        fake.settings.max_model_len, VERSION, config.engines,
    )  # fmt: skip
    return ServedHere(
        fake.url, fake.root_url, (fake.metrics_url,), params.model.name, params, effective, tuple(argv), fake=fake
    )


@contextmanager
def served_here(process: bool = False) -> Iterator[None]:
    """Let sessions start their servers in this process."""
    if process:
        yield
        return
    with patch.object(opening, "serve", serve_here), patch.object(own_server, "serve", serve_here):
        yield


def measure(profile_path: Path, arm: str, out: Path, *, process: bool = False, **options: Any) -> list[Record]:
    """Measure an arm completely and return its records."""
    with served_here(process), start(profile_path, arm, out, process=process, **options) as session:
        session.run_all()
    return read_records(out / f"{Path(arm).stem}.jsonl")


def start(profile_path: Path, arm: str, out: Path, *, process: bool = False, **options: Any) -> Session:
    """Open a session that says nothing."""
    with served_here(process):
        return open_session(profile_path, arm, out, progress=lambda _: None, **options)


def of(records: list[Record], kind: str, **fields: Any) -> list[Record]:
    """Return the records of a kind with these fields."""
    return [r for r in records if r["record"] == kind and fields.items() <= r.items()]
