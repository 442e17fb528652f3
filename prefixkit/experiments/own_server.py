"""A server for one experiment alone, with engine arguments of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefixkit.errors import ServerError
from prefixkit.experiments.opening import run_record
from prefixkit.experiments.session import Session
from prefixkit.params import Params
from prefixkit.records import last
from prefixkit.server import serve


def with_engine_args(params: Params, **changes: Any) -> Params:
    """Return parameters whose engine arguments, in whatever form they are, hold `changes`."""
    old = params.server.engine_args
    new: dict[str, Any] | list[str] | str
    flags = [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    if isinstance(old, dict):
        given = {name.replace("-", "_") for name in changes}
        new = {name: value for name, value in old.items() if name.replace("-", "_") not in given} | changes
    else:
        new = [*old, *flags] if isinstance(old, list) else " ".join([old, *flags]).strip()
    # Its own port: the arm's may be one that another process has taken meanwhile.
    server = params.server.model_copy(update={"engine_args": new, "port": "auto"})
    return params.model_copy(update={"server": server})


def engine_arg(params: Params, name: str) -> Any:
    """Return an engine argument given as a mapping, or None."""
    given = params.server.engine_args
    return given.get(name, given.get(name.replace("_", "-"))) if isinstance(given, dict) else None


def known_block_size(session: Session) -> int | None:
    """Return the block size of the arm's own server, as it was asked for or as it was last reported."""
    asked = engine_arg(session.params, "block_size")
    run = last((r for r in session.records if not r.get("experiment")), "run") or {}
    return asked if isinstance(asked, int) else run.get("block_size")


@contextmanager
def own_server(session: Session, experiment: str, name: str, **changes: Any) -> Iterator[bool]:
    """Stop the arm's server and hold one with these engine arguments; yields False, recorded as a skip, without one.

    The arm stays incomplete when it does not start. Its start is a `run` record with `experiment` set, which tells it
    from the arm's own.
    """
    with changed_server(session, experiment, name, with_engine_args(session.params, **changes)) as failed:
        if failed:
            session.leave_unfinished(f"{experiment}: {failed}")
        yield failed is None


@contextmanager
def changed_server(session: Session, experiment: str, name: str, params: Params) -> Iterator[str | None]:
    """Hold a server of `params` in place of the arm's; yields why there is none: its error, or "" where none may be."""
    if session.params.server.launcher == "url":
        session.skip(experiment, "needs a server of its own, but server.launcher is url")
        yield ""
        return
    session.detach()
    log_path = session.path.with_suffix(f".{name}.server.log")
    try:
        server = serve(params, log_path=log_path, progress=session.progress)
    except ServerError as error:
        session.skip(experiment, f"{name}: {error.message}", remedy=error.remedy)
        yield error.message
        return
    session.append("run", experiment=experiment, **run_record(session, server))
    session.attach(server)
    try:
        yield None
    finally:
        session.detach()
