"""Folders of simulated records: complete, and each of the ways in which data can be missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prefixkit.article.data import write_settings
from tests.fakes import records
from tests.fakes.more_records import EVERY, eviction
from tests.fakes.records import CORE, Arm, World


def _pair(folder: Path, experiments: tuple[records.Experiment, ...] = CORE, world: World | None = None) -> None:
    records.write(folder, *(records.local(name, experiments, world=world) for name in ("off", "on")))


def everything(folder: Path) -> None:
    """Write a complete run of every experiment, cloud included."""
    records.complete(folder, EVERY)
    records.complete(folder / "other", seed=1)
    write_settings(folder, {"compare": str(folder / "other")})


def core(folder: Path) -> None:
    """Write a complete run of the default experiments; no cloud arm."""
    _pair(folder)


def cloud_skipped(folder: Path) -> None:
    """Skip the cloud arm for want of a key."""
    _pair(folder)
    records.write(folder, records.skipped("cloud"))


def one_length(folder: Path) -> None:
    """Measure a single prompt length."""
    _pair(folder, (records.switch, lambda arm: records.length(arm, lengths=(512,), repeats=2)))


def single_requests(folder: Path) -> None:
    """Measure each length once, without a control."""
    _pair(folder, (lambda arm: records.length(arm, repeats=1, control=False),))


def off_missing(folder: Path) -> None:
    """Leave the off arm out."""
    records.write(folder, records.local("on"))


def off_failed(folder: Path) -> None:
    """Let every request of the off arm fail."""
    off = Arm("off", World())
    records.begin(off)
    for number in range(5):
        off.fail("length", "cold", "http", "HTTP 500: out of memory", target_tokens=256, cell=f"length/256/r{number}")
    off.append("end", status="failed", reason="all 5 requests failed")
    records.write(folder, off, records.local("on"))


def on_refused(folder: Path) -> None:
    """Refuse the on arm because its server says that the cache is off."""
    on = Arm("on", World())
    records.begin(on, enable_prefix_caching=False)
    on.append("skip", experiment=None, reason="the server says enable_prefix_caching=False, arm on means True")
    on.append("end", status="refused", reason="")
    records.write(folder, records.local("off"), on)


def no_help(folder: Path) -> None:
    """Let hits save nothing."""
    _pair(folder, world=World(helps=False))


def no_hits(folder: Path) -> None:
    """Let the cache find nothing."""
    _pair(folder, world=World(helps=False, block=10_000))


def no_counters(folder: Path) -> None:
    """Leave the counters unreadable and everything that a server may not report unreported."""
    arms = [records.local(name) for name in ("off", "on")]
    for arm in arms:
        for r in arm.records:
            if r["record"] == "probe":
                r.update(cached_tokens=None, server=None, timings={})
            if r["record"] in ("counters", "sample"):
                r.update(status="unreachable", queries=None, hits=None, hit_rate=None, message="HTTP 500")
    records.write(folder, *arms)


def only_eviction(folder: Path) -> None:
    """Run nothing but an experiment of the on arm."""
    _pair(folder, (eviction,))


def only_started(folder: Path) -> None:
    """Interrupt both arms right after their servers started."""
    arms = [Arm(name, World()) for name in ("off", "on")]
    for arm in arms:
        records.begin(arm)
    records.write(folder, *arms)


def only_cloud(folder: Path) -> None:
    """Run the cloud arm alone."""
    records.write(folder, records.cloud(("gpt-4o-mini", "qwen2.5-7b-instruct")))


CASES: dict[str, Callable[[Path], None]] = {
    f.__name__: f
    for f in (
        everything, core, cloud_skipped, one_length, single_requests, off_missing, off_failed, on_refused, no_help,
        no_hits, no_counters, only_eviction, only_started, only_cloud,
    )
}  # fmt: skip


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives the folder of a case, written once."""
    known: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in known:
            known[name] = tmp_path_factory.mktemp(name)
            CASES[name](known[name])
        return known[name]

    return folder
