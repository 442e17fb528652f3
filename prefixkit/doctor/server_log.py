"""What a vLLM log says of its cache: the setting in force, block size, capacity, and the last rolling hit rate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from prefixkit.doctor.check import Check
from prefixkit.errors import ParamsError

_ENABLED = re.compile(r"enable_prefix_caching['\"]?\s*[=:]\s*(True|False)")
_BLOCK = re.compile(r"[Ss]etting attention block size to (\d+) tokens")
_CAPACITY = re.compile(r"KV cache size: ([\d,]+) tokens")
_RATE = re.compile(r"(?<!External )(?<!MM )Prefix cache hit rate: (?:GPU: )?([\d.]+)%(?:, CPU: ([\d.]+)%)?")


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the log says; None where it does not."""

    enabled: bool | None = None
    block_size: int | None = None
    kv_capacity_tokens: int | None = None
    last_rate: float | None = None


def read_log(path: str | Path) -> LogFacts:
    """Return what the last start in a log file said; raise ParamsError for a file that cannot be read."""
    enabled: bool | None = None
    block: int | None = None
    capacity: int | None = None
    rate: float | None = None
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if found := _ENABLED.search(line):
                    enabled = found[1] == "True"
                if found := _BLOCK.search(line):
                    block = int(found[1])
                if found := _CAPACITY.search(line):
                    capacity = int(found[1].replace(",", ""))
                if found := _RATE.search(line):
                    rate = max(float(v) for v in found.groups() if v) / 100
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read ({error.strerror})", "give the server's log file") from None
    return LogFacts(enabled, block, capacity, rate)


def log_check(facts: LogFacts) -> Check:
    """Return the log's hit rate as context: a rolling window over past requests, never the rate of a run."""
    setting = "" if facts.enabled is None else f"; it started with enable_prefix_caching={facts.enabled}"
    if facts.last_rate is None:
        return Check("log", "info", f"the log holds no prefix cache hit rate{setting}")
    window = f"last logged hit rate {facts.last_rate:.1%}, a rolling window of about 1,000 requests: context only"
    return Check("log", "info", window + setting)
