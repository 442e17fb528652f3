"""One start at a time on this machine: two servers that measure free GPU memory together both get it wrong."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from prefixkit.errors import ServerError

POLL_S = 0.25


def lock_path() -> Path:
    """Return the lock file that all users of this machine share."""
    return Path(tempfile.gettempdir()) / "prefixkit-start.lock"


def _open() -> int:
    # The file is opened without O_CREAT first: in a sticky folder the kernel refuses O_CREAT on another user's file.
    path = lock_path()
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    raise FileNotFoundError(path)


@contextlib.contextmanager
def start_lock(timeout_s: float, progress: Callable[[str], object]) -> Iterator[int]:
    """Hold the machine-wide start lock; yield its descriptor, which a guard may inherit so that it outlives us."""
    try:
        handle = _open()
    except OSError as error:
        raise ServerError(
            f"{lock_path()}: cannot be opened ({error.strerror or error})", "make it readable, or delete it"
        ) from None
    try:
        end = time.monotonic() + timeout_s
        told = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise ServerError(
                        f"another server was starting or stopping on this machine for {timeout_s:.0f} s",
                        f"wait for it, or raise server.ready_timeout_s (the lock is {lock_path()})",
                    ) from None
                if not told:
                    progress("waiting: another server is starting or stopping on this machine")
                    told = True
                time.sleep(POLL_S)
        try:
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
