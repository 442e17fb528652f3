"""Open an arm's measurement: resume or set aside its records, start its server, write where it runs."""

from __future__ import annotations

import atexit
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prefixkit import paths
from prefixkit.errors import ParamsError, RecordsError, ServerError
from prefixkit.experiments.session import Scope, Session
from prefixkit.experiments.state import missing_variable, records_state
from prefixkit.params import Params, load_arm, params_hash, profile_name
from prefixkit.prompts import given_lines
from prefixkit.provenance import UNKNOWN, provenance
from prefixkit.records import archive, finished_cells, now, read_records, supersede_unfinished
from prefixkit.server import Effective, Server, serve
from prefixkit.workload.requests import count_requests, find_workload

SECRET = re.compile(r"api.?key|_key$|_token$|secret|passw", re.IGNORECASE)
KEY_ARGUMENT = re.compile(r"(--api[-_]key[= ]+)\S+")
TEMPLATE_TOKENS = 64
ALONE = "none"
CONTRADICTION = "the arm asks for enable_prefix_caching"


def open_session(
    profile: str | Path,
    arm: str,
    out: str | Path = "",
    *,
    progress: Callable[[str], object] = print,
    rounds: int | None = None,
    attach: str | Path = "",
) -> Session:
    """Return the session that measures `arm` of `profile` into the folder `out`, with its server running.

    `attach` names a file that describes the arm's running server (`describe`): experiments on servers of their own are
    then left for a session with `attach="none"`, which runs those alone, without a server of the arm.
    `out` is relative to the project root; empty means report/out/PROFILE.
    Records of the same parameters are continued; others are set aside. When everything is measured, a key is missing or
    the server is not what the arm says, no experiment runs: see `Session.status` and `.reason`.
    """
    params = load_arm(profile, arm)
    check_params(params, str(profile))
    arm = Path(arm).stem
    path = (paths.ROOT / out if str(out) else paths.OUT / profile_name(profile)) / f"{arm}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    if (earlier := _open.get(path.absolute())) is not None:
        earlier.close("interrupted", "opened again")
    records = read_records(path) if path.exists() else []
    state = records_state(records, params)
    scope: Scope = "own" if attach == ALONE else "shared" if attach else "all"
    common: dict[str, Any] = {
        "profile": profile_name(profile), "progress": progress, "rounds": rounds, "scope": scope,
    }  # fmt: skip
    if state.name in ("complete", "skipped"):
        progress(f"{arm}: {state.message}")
        return Session(params, arm, path, status=state.name, reason=state.message, **common)
    if arm != "cloud" and params.experiments.workload:
        count_requests(find_workload(params.experiments.workload.path), progress=progress)
    lock = _lock(path)
    if state.name == "stale":
        progress(f"{arm}: {state.message}; its records are kept as {archive(path, records).name}")
    elif records:
        repeated = supersede_unfinished(path, finished_cells(records))
        progress(f"{arm}: continuing, {len(finished_cells(records))} cells are done, {repeated} requests are repeated")
    session = Session(params, arm, path, **common)
    session.on_close += [lambda: _open.pop(path.absolute(), None), lambda: os.close(lock)]
    _open[path.absolute()] = session
    if arm == "cloud":
        _open_cloud(session)
    elif scope != "own":
        _open_server(session, Path(attach) if attach else None)
    return session


def describe(server: Server, path: Path) -> Path:
    """Write what another process must know to attach to a running server; return the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**server.summary(), "argv": _without_key(list(server.argv))}, indent=1), "utf-8")
    return path


def _attached(params: Params, path: Path, progress: Callable[[str], object]) -> Server:
    """Return a running server of these parameters as its description has it; its cache is asked for anew."""
    told = json.loads(path.read_text("utf-8"))
    address = {"launcher": "url", "url": told["url"], "metrics_urls": told["metrics_urls"]}
    server = serve(params.model_copy(update={"server": params.server.model_copy(update=address)}), progress=progress)
    known = {key: value for key, value in asdict(server.effective).items() if value is not None}
    server.effective = Effective(**{**told["effective"], **known})
    server.argv = tuple(told["argv"])
    return server


_open: dict[Path, Session] = {}


@atexit.register
def _close_all() -> None:
    for session in list(_open.values()):
        session.close("interrupted", "the process ended")


def _lock(path: Path) -> int:
    """Keep two processes from measuring one arm into one folder; return the descriptor to close afterwards."""
    import fcntl  # not on every system, and only measuring needs it

    descriptor = os.open(path.with_name(f".{path.stem}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise RecordsError(
            f"{path}: another process is measuring this arm", "wait for it, or give another folder"
        ) from None
    return descriptor


def check_params(params: Params, source: str) -> None:
    """Refuse what cannot be measured before anything starts."""
    switch, length, arguments = params.experiments.switch, params.experiments.length, params.server.engine_args
    if switch and not given_lines(switch.questions, ("built in",)):
        raise ParamsError(f"{source}: experiments.switch.questions: holds no question", "write one question a line")
    limit = arguments.get("max_model_len") if isinstance(arguments, dict) else None
    if length and isinstance(limit, int):
        longest = max([*length.lengths, *length.short_lengths])
        if longest + length.max_tokens + TEMPLATE_TOKENS > limit:
            raise ParamsError(
                f"{source}: experiments.length.lengths: {longest} tokens and a question do not fit into "
                f"server.engine_args.max_model_len {limit}",
                "raise max_model_len or leave the length out",
            )


def run_record(session: Session, server: Server | None, error: str = "") -> dict[str, Any]:
    """Return what a `run` record says of this run; what a server that did not start would have said is unknown."""
    params = session.params
    effective = server.effective if server else None
    return {
        "params": _without_secrets(params.model_dump(mode="json")),
        "params_hash": params_hash(params),
        **provenance(),
        "vllm": (effective.vllm or UNKNOWN) if effective else None,
        "argv": _without_key(list(server.argv)) if server else [],
        "model": {"name": params.model.name, "weights": "random" if params.model.load_format == "dummy" else "real"},
        "enable_prefix_caching": effective.enable_prefix_caching if effective else None,
        "block_size": effective.block_size if effective else None,
        "kv_capacity_tokens": effective.kv_capacity_tokens if effective else None,
        "dtype": effective.dtype if effective else None,
        "max_model_len": effective.max_model_len if effective else None,
        "engines": effective.engines if effective else None,
        "url": server.url if server and params.server.launcher == "url" else None,
        "attached": session.scope == "shared",
        "nonce": session.nonce,
        "error": error or None,
        "started_at": now(),
    }


def _open_server(session: Session, attach: Path | None) -> None:
    try:
        if attach:
            server = _attached(session.params, attach, session.progress)
        else:
            server = serve(session.params, log_path=session.path.with_suffix(".server.log"), progress=session.progress)
    except ServerError as error:
        _end_without_server(session, error)
        if session.status != "refused":
            raise
        return
    except BaseException as error:
        session.append("run", **run_record(session, None, type(error).__name__))
        session.close("interrupted", "while the server started")
        raise
    session.attach(server)
    session.append("run", **run_record(session, server))


def refuse(session: Session, reason: str) -> None:
    """End the run because its server is not what the arm says."""
    session.skip(None, reason)
    session.close("refused", reason)
    session.status, session.reason = "refused", reason


def _end_without_server(session: Session, error: ServerError) -> None:
    session.append("run", **run_record(session, None, str(error)))
    if CONTRADICTION in error.message:
        refuse(session, error.message)
        return
    session.skip(None, error.message, remedy=error.remedy)
    session.close("failed", error.message)


def _open_cloud(session: Session) -> None:
    host = urlsplit(os.environ.get(session.params.cloud.base_url_env, "").strip()).hostname
    session.append("run", **run_record(session, None), host=host)
    name = missing_variable(session.params)
    if name is None:
        return
    reason = f"{name} is not set in this process"
    remedy = f'sh: export {name}="..."; PowerShell: $env:{name} = "..."; then run again'
    session.skip(None, reason, remedy=remedy, variable=name)
    session.close("skipped", reason)
    session.status, session.reason = "skipped", reason


def _without_secrets(node: Any) -> Any:
    """Hide every string whose key is named like a secret, and keys among arguments; `..._env` keys hold only names."""
    if isinstance(node, dict):
        return {
            key: "(hidden)" if isinstance(value, str) and SECRET.search(key) else _without_secrets(value)
            for key, value in node.items()
        }
    if isinstance(node, list) and all(isinstance(item, str) for item in node):
        return _without_key(node)
    if isinstance(node, list):
        return [_without_secrets(item) for item in node]
    return KEY_ARGUMENT.sub(r"\1(hidden)", node) if isinstance(node, str) else node


def _without_key(argv: list[str]) -> list[str]:
    shown, hide = [], False
    for argument in argv:
        shown.append("(hidden)" if hide else KEY_ARGUMENT.sub(r"\1(hidden)", argument))
        hide = argument in ("--api-key", "--api_key")
    return shown
