"""`serve`: get the server that the parameters ask for, by starting one or by attaching to one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ProbeError, ServerError
from prefixkit.model import model_path
from prefixkit.params import Params
from prefixkit.probe.urls import endpoints
from prefixkit.records import now
from prefixkit.server import command, docker, effective, gpu, ports, process
from prefixkit.server.command import Command
from prefixkit.server.failure import death, shown, with_log
from prefixkit.server.flags import SettingsError
from prefixkit.server.http import Http
from prefixkit.server.lock import start_lock
from prefixkit.server.log import Log
from prefixkit.server.ready import Ladder, wait_ready
from prefixkit.server.server import Progress, Server, register, running

_PORT_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|\[Errno 98\]")


def serve(
    params: Params, *, log_path: str | Path | None = None, progress: Progress = print, reuse: bool = False
) -> Server:
    """Return a ready server, usable as `with serve(params) as server:` or bare, with `server.stop()`.

    A cell that is run again finds its server: one that an earlier bare call in this process started with equal
    model and server parameters, or on the same fixed port, is stopped first, so that a measurement never begins with
    a warm cache; `reuse=True` returns the one with equal parameters instead. Servers inside a `with` block are left
    alone. Raises ServerError: one line with the root cause, a remedy and the log's path.
    """
    if params.server.launcher == "url":
        return _attach(params, progress)
    for old in running():
        same = _key(old.params) == _key(params)
        if reuse and same and old.alive:
            progress(f"using the running server at {old.url} (pid {old.pid})")
            return old
        if not old.scoped and (same or old.port == params.server.port):
            progress(f"stopping the server at {old.url} (pid {old.pid}), which an earlier call started")
            old.stop()
    return _start(params, Path(log_path) if log_path else None, progress)


def _key(params: Params) -> tuple[object, ...]:
    return params.model, params.server, params.enable_prefix_caching


def _start(params: Params, log_path: Path | None, progress: Progress) -> Server:
    with start_lock(params.server.ready_timeout_s, progress) as lock_fd:
        gpu.wait_settled()
        return start_locked(params, log_path, progress, lock_fd)


def start_locked(
    params: Params, log_path: Path | None, progress: Progress, lock_fd: int, env: Mapping[str, str] | None = None
) -> Server:
    """Start a server while the start lock is held, with variables of its own in `env`; once more on a port clash.

    vLLM looks for free ports of its own long before it listens on them: another process may be faster.
    """
    try:
        return _start_once(params, log_path, progress, lock_fd, env or {})
    except ServerError as error:
        if params.server.port != "auto" or not _PORT_TAKEN.search(error.message):
            raise
        progress(f"note: {error.message}; starting once more")
        return _start_once(params, log_path, progress, lock_fd, env or {})


def _start_once(
    params: Params, log_path: Path | None, progress: Progress, lock_fd: int, own_env: Mapping[str, str]
) -> Server:
    settings = params.server
    key = command.api_key(params)
    env, notes = command.environment(params, key)
    env |= own_env
    _check_weights(params)
    port = ports.choose(settings.port)
    path = log_path or paths.OUT / "servers" / f"{now().replace(':', '')}-{port}.log"
    path = path.absolute()
    if settings.launcher == "docker":
        made = docker.command(params, port, env, with_key=key is not None)
    else:
        made = command.local(params, port, env, path.with_suffix(".config.yaml"))
    for note in (*notes, *made.notes):
        progress(f"note: {note}")
    log = _open_log(path, made)
    gpu_before = gpu.used_mib()
    progress(f"starting vLLM {made.version or '(version unknown)'} on port {port}, log: {shown(path)}")
    child = process.start(made.argv, env=env, cwd=paths.ROOT, log_path=path, lock_fd=lock_fd, cleanup=made.cleanup)
    root = f"http://127.0.0.1:{port}"
    http = Http(root, key, f"{root}/v1")
    server = Server(
        url=http.api,
        root_url=root,
        metrics_urls=tuple(settings.metrics_urls) or (f"{root}/metrics",),
        model=params.model.name,
        params=params,
        argv=made.argv,
        log_path=path,
        api_key=key,
        notes=(*notes, *made.notes),
        _http=http,
        _process=child,
        _command=made,
        _log=log,
        _gpu_before=gpu_before,
        _progress=progress,
    )
    register(server)
    try:
        _become_ready(server, child, log, made, progress)
    except BaseException as error:
        server.stop()
        if isinstance(error, ServerError) and "whole log:" not in error.remedy:
            raise with_log(error, log) from None
        raise
    return server


def _become_ready(server: Server, child: process.Process, log: Log, made: Command, progress: Progress) -> None:
    def ended(seconds: float) -> None:
        if child.wait(seconds):
            raise death(child, log, made, "did not start")

    def owner() -> None:
        holders = ports.holders(server.port)
        if holders and not made.cleanup and not holders & child.members():
            names = ", ".join(ports.name_of(pid) for pid in sorted(holders))
            raise ServerError(f"port {server.port} is answered by {names}, not by our server", "set server.port: auto")

    source = server.params.server.api_key_env or ""
    ladder = Ladder(server._client(), server.model, source, owner=owner)
    seconds = wait_ready(
        ladder,
        ended=ended,
        stage=log.update,
        timeout_s=server.params.server.ready_timeout_s,
        progress=progress,
    )
    _settle(server, log.text(), progress, made.version)
    progress(f"ready after {seconds:.0f} s: {server.url} ({_caching(server)})")


def _attach(params: Params, progress: Progress) -> Server:
    assert params.server.url is not None
    try:
        found = endpoints(params.server.url)
    except ProbeError as error:
        raise SettingsError(f"server.url: {error.message}", error.remedy) from None
    key = command.api_key(params)
    http = Http(found.root, key, found.base)
    server = Server(
        url=found.base,
        root_url=found.root,
        metrics_urls=tuple(params.server.metrics_urls) or (found.metrics,),
        model=params.model.name,
        params=params,
        api_key=key,
        _http=http,
        _progress=progress,
    )
    ladder = Ladder(http, server.model, params.server.api_key_env or "", attached=True)
    pause: Callable[[float], None] = time.sleep
    wait_ready(ladder, ended=pause, stage=lambda: "", timeout_s=params.server.ready_timeout_s, progress=progress)
    _settle(server, "", progress, None)
    progress(f"attached to {server.url} ({_caching(server)})")
    return server


def _settle(server: Server, log_text: str, progress: Progress, version: str | None) -> None:
    """Read the settings in force and refuse a server that is not what its arm says."""
    reading = effective.read(server._client(), server.metrics_urls, log_text, server.model, version=version)
    server.effective = reading.effective
    server.notes = (*server.notes, *reading.notes)
    for note in reading.notes:
        progress(f"note: {note}")
    if problem := effective.contradiction(server.params.enable_prefix_caching, reading):
        raise ServerError(
            problem, "look in the start-up log for what changed it, or choose a model or version that obeys"
        )


def _caching(server: Server) -> str:
    e = server.effective
    state = {True: "on", False: "off", None: "not reported"}[e.enable_prefix_caching]
    parts = [f"prefix caching {state}"]
    if e.block_size:
        parts.append(f"blocks of {e.block_size} tokens")
    if e.kv_capacity_tokens:
        parts.append(f"KV cache of {e.kv_capacity_tokens:,} tokens")
    return ", ".join(parts)


def _check_weights(params: Params) -> None:
    path = model_path(params)
    if params.model.package and not (Path(path) / "config.json").is_file():
        raise ServerError(f"{shown(Path(path))}: the weights are not written out yet", "run `make setup`")
    local = path.startswith(("/", "./", "../", "~"))
    if params.server.launcher == "local" and local and not Path(path).expanduser().exists():
        raise ServerError(f"model.path: {path} does not exist", "mend model.path: a folder, or a hub id")


def _open_log(path: Path, made: Command) -> Log:
    """Append a heading to the log, so that starts which share a file can be told apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"=== {now()} {' '.join(made.argv)}\n")
    return Log(path, path.stat().st_size)
