"""Measure both arms side by side: two servers held open, measure.ipynb attached to each in turn, round by round.

Slow drift of a machine (clocks, temperature, neighbours) then falls on both arms alike. Needs room for two servers;
experiments on servers of their own come last, when both have ended.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ParamsError
from prefixkit.experiments import arm_state
from prefixkit.experiments.opening import ALONE, describe
from prefixkit.experiments.session import LEFT_FOR_OWN
from prefixkit.notebook import MEASURE, execute
from prefixkit.params import load_arm, profile_name
from prefixkit.records import finished_cells, read_records
from prefixkit.server import serve

ARMS = ("off", "on")


def interleave(
    profile: str, out: Path | None = None, *, rounds: int = 1, progress: Callable[[str], object] = print
) -> Path:
    """Measure arms off and on of `profile`, `rounds` rounds of `length` a visit; return the folder of the records.

    Raises ParamsError, ServerError or NotebookError; what was measured stays, and the same call continues.
    """
    out = out or paths.OUT / profile_name(profile)
    params = {arm: load_arm(profile, arm) for arm in ARMS}
    if params["on"].server.launcher == "url":
        raise ParamsError(
            f"{profile}: server.launcher: `url` gives one server for both arms", "use `local` or `docker`"
        )
    if any(_waits(out, profile, arm) for arm in ARMS):
        with ExitStack() as stack:
            running = {}
            for arm in ARMS:
                server = stack.enter_context(serve(params[arm], log_path=out / f"{arm}.server.log", progress=progress))
                running[arm] = describe(server, out / "running" / f"{arm}.json")
            _take_turns(profile, out, running, rounds, progress)
    for arm in ARMS:
        if LEFT_FOR_OWN in arm_state(out, profile, arm).message:
            progress(f"arm {arm}: experiments on servers of their own")
            parameters = {"profile": profile, "arm": arm, "out": str(out), "attach": ALONE}
            execute(MEASURE, out / f"measure.{arm}.own.ipynb", parameters)
    return out


def _take_turns(
    profile: str, out: Path, running: dict[str, Path], rounds: int, progress: Callable[[str], object]
) -> None:
    """Visit the arms until neither has anything left, or until a visit to each brings nothing new."""
    visit, before = 0, -1
    while (waiting := [arm for arm in ARMS if _waits(out, profile, arm)]) and (done := _cells(out)) > before:
        # The order turns round at every visit, so that neither arm is always the first.
        for arm in waiting if visit % 2 == 0 else reversed(waiting):
            progress(f"visit {visit}: arm {arm}")
            parameters = {
                "profile": profile, "arm": arm, "out": str(out), "rounds": rounds, "attach": str(running[arm])
            }  # fmt: skip
            execute(MEASURE, out / f"measure.{arm}.{visit}.ipynb", parameters)
        visit, before = visit + 1, done


def _waits(out: Path, profile: str, arm: str) -> bool:
    """Return whether an arm has something left to measure on its own server."""
    state = arm_state(out, profile, arm)
    return state.needs_run and LEFT_FOR_OWN not in state.message


def _cells(out: Path) -> int:
    """Return how many cells are measured."""
    files = [out / f"{arm}.jsonl" for arm in ARMS]
    return sum(len(finished_cells(read_records(file))) for file in files if file.is_file())
