"""Why a server did not start, from its own log: the root line first, not the wrappers around it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from prefixkit.server import log
from prefixkit.server.rules import RULES

_EXCEPTION = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception|Interrupt|NotFound|Unavailable|Failure)): ?(.*)$")
_GENERIC = re.compile(
    r"Engine core initialization failed|Engine process failed to start|WorkerProc initialization failed|EngineDeadError"
    r"|EngineCore (failed to start|encountered)|Failed core proc|See root cause above|raise_for_status|CancelledError"
    r"|Worker failed with error|API server failed|KeyboardInterrupt"
)
_CHILD = re.compile(r"^\((?:EngineCore|Worker|VllmWorker|Ray|Core)", re.IGNORECASE)
_LINE_LIMIT = 400


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The line that says what happened, and what to do about it (empty when not known)."""

    line: str
    remedy: str = ""


def diagnose(text: str, hint: Callable[[str], str] = lambda _: "") -> Diagnosis | None:
    """Return the root cause that a log shows, or None; `hint(kind)` may add what only the machine knows."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip() and not log.is_harmless(line)]
    plain = [log.plain(line) for line in lines]
    for rule in RULES:
        for line in plain:
            if match := rule.pattern.search(line):
                extra = hint(rule.kind)
                return Diagnosis(
                    _short(line, match.start()), f"{extra}; {rule.remedy(match)}" if extra else rule.remedy(match)
                )
    if root := _root(lines, plain):
        return Diagnosis(_short(root))
    return None


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    lines = [log.plain(line) for line in re.split(r"[\r\n]+", text)]
    return _short(next((line for line in reversed(lines) if line), ""))


def _root(lines: list[str], plain: list[str]) -> str:
    """Return the first exception of a child process, else the first of the last chain of exceptions."""
    found = [
        (number, text) for number, text in enumerate(plain) if _EXCEPTION.match(text) and not _GENERIC.search(text)
    ]
    for number, text in found:
        if _CHILD.match(lines[number]):
            return text
    chain_start = 0
    for number, text in enumerate(plain):
        if text.startswith("Traceback (most recent call last)"):
            before = plain[number - 1] if number else ""
            if not before.startswith(("During handling of", "The above exception")):
                chain_start = number
    return next((text for number, text in found if number > chain_start), "")


def _short(line: str, start: int = 0) -> str:
    """Return at most so much of a line, with the place that matters in it."""
    if len(line) <= _LINE_LIMIT:
        return line
    begin = max(0, min(start - 40, len(line) - _LINE_LIMIT))
    return ("…" if begin else "") + line[begin : begin + _LINE_LIMIT] + "…"
