"""The server's log file: what it is doing now, and the end of it, without ever reading all of a long one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

READ_LIMIT = 1 << 20
TAIL_LIMIT = 4 << 20

# `(EngineCore pid=7) ERROR 11-29 14:18:26 [core.py:1] text`; before 0.8 the place had no opening bracket.
_PREFIX = re.compile(r"^(?:\(\S+ (?:pid|rank)=[^)]*\)\s*)?(?:([A-Z]+) \d\d-\d\d [\d:]+ \[?[^\]\s]*\]\s?)?")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_STAGES = (
    (re.compile(r"Downloading|Fetching \d+ files|Pulling (from|fs layer)|Time spent downloading"), "downloading"),
    (re.compile(r"Initializing an? (V1 )?LLM engine"), "starting the engine"),
    (re.compile(r"Starting to load model|Loading weights with"), "loading weights"),
    (re.compile(r"Loading \S+ checkpoint shards:\s+(?P<detail>\d+%)"), "loading weights"),
    (re.compile(r"Dynamo bytecode|torch\.compile (takes|range)|Compiling (a|the) graph|Start compiling"), "compiling"),
    (re.compile(r"KV cache size|[Mm]emory profiling|# \w+ blocks:"), "sizing the KV cache"),
    (re.compile(r"Capturing (?:CUDA|ACL) ?graphs?|Graph capturing|Capturing cudagraphs"), "capturing graphs"),
    (re.compile(r"Warming up model"), "warming up"),
    (re.compile(r"Starting vLLM (API )?server|Started server process|startup complete"), "opening the port"),
)  # fmt: skip


def plain(line: str) -> str:
    """Return a log line without colours and without the process, level and place before its text."""
    return _PREFIX.sub("", _COLOURS.sub("", line)).strip()


def is_harmless(line: str) -> bool:
    """Say whether a log line is marked as information or warning, so no cause of an end."""
    match = _PREFIX.match(_COLOURS.sub("", line))
    return match is not None and match.group(1) in ("DEBUG", "INFO", "WARNING")


def stage_of(line: str) -> str:
    """Return what a log line says the server is doing, or nothing."""
    text = plain(line)
    for pattern, stage in _STAGES:
        if match := pattern.search(text):
            detail = match.groupdict().get("detail")
            return f"{stage} ({detail})" if detail else stage
    return ""


@dataclass
class Log:
    """A log file from where this start began in it."""

    path: Path
    start: int = 0
    stage: str = ""
    _seen: int = 0

    def __post_init__(self) -> None:
        self._seen = self.start

    def update(self) -> str:
        """Read what was written since the last call and return the current stage; of a flood only the end is read."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(self._seen, size - READ_LIMIT))
                data = file.read(READ_LIMIT)
        except OSError:
            return self.stage
        self._seen = size
        for line in reversed(re.split(r"[\r\n]+", data.decode("utf-8", errors="replace"))):
            if stage := stage_of(line[:2000]):
                self.stage = stage
                break
        return self.stage

    def text(self) -> str:
        """Return this start's log: its beginning, and of a long one also its end."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(self.start)
                if size - self.start <= 2 * TAIL_LIMIT:
                    data = file.read()
                else:
                    data = file.read(TAIL_LIMIT) + b"\n"
                    file.seek(size - TAIL_LIMIT)
                    data += file.read()
        except OSError:
            return ""
        return data.decode("utf-8", errors="replace")
