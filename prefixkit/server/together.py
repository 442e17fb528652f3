"""Several servers started at the same time, where each one's KV cache is a given number of bytes.

vLLM then profiles no memory (checked in 0.25 and 0.32), so servers that start together cannot mistake each other's
memory for their own. Each gets a compile cache of its own: vLLM writes parts of it in place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from prefixkit.errors import PrefixkitError, ServerError
from prefixkit.params import Params
from prefixkit.server import flags, gpu, start
from prefixkit.server.lock import start_lock
from prefixkit.server.server import Progress, Server, running

FIXED_MEMORY = "kv-cache-memory-bytes"
CACHE = "VLLM_CACHE_ROOT"
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server to start: a name for its progress lines, its parameters, its log."""

    name: str
    params: Params
    log_path: Path


def can_start_together(params: Params) -> bool:
    """Return whether a server's KV cache is a given number of bytes, so that it measures no free memory."""
    return params.server.launcher != "url" and any(
        flag.name == FIXED_MEMORY for flag in flags.parse(params.server.engine_args)
    )


def serve_together(wanted: Sequence[Wanted], *, progress: Progress = print) -> list[Server | ServerError]:
    """Start all servers at once and return each, ready, or the reason why it did not start, in the order given.

    An interruption stops them all.
    """
    if not wanted:
        return []
    timeout_s = max(one.params.server.ready_timeout_s for one in wanted)
    with start_lock(timeout_s, progress) as lock_fd, ThreadPoolExecutor(len(wanted)) as pool:
        gpu.wait_settled()

        def begin(one: Wanted) -> Server:
            return start.start_locked(
                one.params, one.log_path, named(one.name, progress), lock_fd, _own_cache(one.name, one.params)
            )

        futures = [pool.submit(begin, one) for one in wanted]
        try:
            wait(futures)
            return [_outcome(one, future) for one, future in zip(wanted, futures, strict=True)]
        except BaseException:
            _give_up(wanted, futures)
            raise


def stop_together(servers: Sequence[Server], *, progress: Progress = print) -> None:
    """Stop servers at the same time, so that none waits for memory that another one holds; say what went wrong."""
    if not servers:
        return
    with ThreadPoolExecutor(len(servers)) as pool:
        for future in [pool.submit(server.stop) for server in servers]:
            if isinstance(error := future.exception(), ServerError):
                progress(f"note: {error}")
            elif error is not None:
                raise error


def named(name: str, progress: Progress) -> Callable[[str], object]:
    """Return `progress` with a name before each line."""
    return lambda line: progress(f"{name}: {line}")


def _outcome(one: Wanted, future: Future[Server]) -> Server | ServerError:
    try:
        return future.result()
    except PrefixkitError as error:
        return ServerError(f"{one.name}: {error.message}", error.remedy)


def _give_up(wanted: Sequence[Wanted], futures: Sequence[Future[Server]]) -> None:
    """Stop what is starting until nothing starts any more, then what became ready meanwhile."""
    ours = [one.params for one in wanted]
    while not all(future.done() for future in futures):
        stop_together([server for server in running() if any(server.params is params for params in ours)])
        wait(futures, LOOK_S)
    stop_together([future.result() for future in futures if future.exception() is None])


def _own_cache(name: str, params: Params) -> Mapping[str, str]:
    if CACHE in params.server.env or params.server.launcher != "local":
        return {}
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(os.environ.get(CACHE) or Path(home, "vllm"))
    return {CACHE: str(root / "together" / name.replace("/", "-"))}
