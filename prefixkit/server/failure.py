"""The one line that a failed or dead server is reported with."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from prefixkit import paths
from prefixkit.errors import ServerError
from prefixkit.server import gpu, guard
from prefixkit.server.command import Command
from prefixkit.server.diagnose_log import diagnose, last_line
from prefixkit.server.log import Log
from prefixkit.server.process import Process


def shown(path: Path) -> str:
    """Return a path as short as it can be found by: from the project root, else whole."""
    return str(path.relative_to(paths.ROOT)) if path.is_relative_to(paths.ROOT) else str(path)


def death(process: Process, log: Log, command: Command | None, verb: str) -> ServerError:
    """Return the error for a server that ended by itself: how, the root line of its log, the remedy, the log's path."""
    # Child processes may still be writing why; the guard has ended them all when this returns.
    process.stop()
    version = f" {command.version}" if command and command.version else ""
    how = str(process.exit) if process.exit else "its guard was killed"
    found = diagnose(log.text(), _machine)
    line = found.line if found else last_line(log.text())
    remedy = found.remedy if found else ""
    return ServerError(
        f"vLLM{version} {verb} ({how}): {line or 'its log is empty'}",
        "; ".join(part for part in (remedy, f"whole log: {shown(log.path)}") if part),
    )


def with_log(error: ServerError, log: Log) -> ServerError:
    """Return an error of the readiness check with the log's root line, if it shows one, and its path."""
    found = diagnose(log.text(), _machine)
    message = f"{error.message}; its log says: {found.line}" if found else error.message
    remedy = found.remedy if found and found.remedy else error.remedy
    return ServerError(message, "; ".join(part for part in (remedy, f"whole log: {shown(log.path)}") if part))


def is_ours(pid: int) -> bool:
    """Say whether a process belongs to a server that some prefixkit process started."""
    with contextlib.suppress(psutil.Error):
        return any(guard.__file__ in parent.cmdline() for parent in psutil.Process(pid).parents())
    return False


def _machine(kind: str) -> str:
    """Return who holds GPU memory, our own earlier servers first."""
    if kind != "gpu":
        return ""
    holders = gpu.holders()
    ours = [str(h) for h in holders if is_ours(h.pid)]
    others = [str(h) for h in holders if not is_ours(h.pid)]
    parts = []
    if ours:
        parts.append(f"an earlier server of prefixkit still holds memory, stop it first: {', '.join(ours)}")
    if others:
        parts.append(f"GPU memory is held by {', '.join(others)}")
    return "; ".join(parts)
