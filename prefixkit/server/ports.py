"""Ports: who holds one, whether it is free, and a free one to use."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import threading
from pathlib import Path

import psutil

from prefixkit.errors import ServerError

_LOWEST = 20_000
_TRIES = 100
_given: set[int] = set()
_lock = threading.Lock()


def holders(port: int) -> set[int]:
    """Return the ids of the processes that listen on a port, as far as this user may see them."""
    with contextlib.suppress(psutil.AccessDenied):
        return {
            c.pid
            for c in psutil.net_connections("tcp")
            if c.pid and c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port
        }
    return set()


def name_of(pid: int) -> str:
    """Return `pid N (name of USER)`; never the arguments, which may hold a key."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return f"pid {pid} ({process.name()} of {process.username()})"
    return f"pid {pid}"


def _refusal(host: str, port: int) -> OSError | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def is_free(port: int) -> bool:
    """Say whether a server could listen on a port of this machine."""
    return _refusal("0.0.0.0", port) is None


def choose(port: int | str) -> int:
    """Return a free port for "auto", else the port itself; raise ServerError naming who holds it."""
    if not isinstance(port, int):
        return _free()
    error = _refusal("0.0.0.0", port)
    if error is None:
        return port
    if error.errno == errno.EADDRINUSE:
        found = ", ".join(name_of(pid) for pid in sorted(holders(port))) or "a process of another user"
        raise ServerError(f"port {port} is taken by {found}", "stop it, or set server.port: auto")
    raise ServerError(
        f"port {port} cannot be used ({error.strerror})", "choose one above 1024, or set server.port: auto"
    )


def _free() -> int:
    """Return a free port that this process was not given yet, below those that the kernel gives to connections.

    A server listens on it many seconds later: until then nobody may be given it by chance.
    """
    with _lock:
        for _ in range(_TRIES):
            port = random.randrange(_LOWEST, max(_first_of_the_kernel(), _LOWEST + 1))
            if port not in _given and is_free(port):
                _given.add(port)
                return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _first_of_the_kernel() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("utf-8").split()[0])
    return 32_768
