"""Measure both arms side by side: servers held open, measure.ipynb attached to each in turn, round by round.

Slow drift of a machine (clocks, temperature, neighbours) then falls on both arms alike, and on every profile where
several are given. Needs room for all servers at once; experiments on servers of their own come last, when all have
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ParamsError, PrefixkitError, ServerError
from prefixkit.experiments import arm_state
from prefixkit.experiments.opening import ALONE, describe
from prefixkit.experiments.session import LEFT_FOR_OWN
from prefixkit.notebook import MEASURE, execute
from prefixkit.params import Params, load_arm, profile_name
from prefixkit.records import finished_cells, read_records
from prefixkit.server import Server, serve
from prefixkit.server.together import Wanted, can_start_together, named, serve_together, stop_together

ARMS = ("off", "on")
Progress = Callable[[str], object]


class InterleaveError(PrefixkitError):
    """Several profiles or arms of which some could not be measured; the others were."""


@dataclass(slots=True)
class _Run:
    """One profile under way: where its servers are described, which arms failed, how many cells it had."""

    profile: str
    out: Path
    params: dict[str, Params]
    running: dict[str, Path] = field(default_factory=dict)
    errors: dict[str, PrefixkitError] = field(default_factory=dict)
    cells: int = -1

    @property
    def name(self) -> str:
        return profile_name(self.profile)

    def waiting(self) -> list[str]:
        """Return the arms that have something left to measure on their own server."""
        return [arm for arm in ARMS if arm not in self.errors and _waits(self.out, self.profile, arm)]

    def moved(self) -> bool:
        """Return whether cells were measured since the last call; True at the first."""
        files = [self.out / f"{arm}.jsonl" for arm in ARMS]
        before = self.cells
        self.cells = sum(len(finished_cells(read_records(file))) for file in files if file.is_file())
        return self.cells > before

    def fail(self, error: PrefixkitError, *arms: str) -> None:
        self.errors |= dict.fromkeys(arms or ARMS, error)


def interleave(
    profiles: Sequence[str], out: Path | None = None, *, rounds: int = 1, progress: Progress = print
) -> list[Path]:
    """Measure arms off and on of each profile, `rounds` rounds of `length` a visit; return the folders of the records.

    `out` is for one profile alone. A profile whose server does not start leaves the others to be measured. Raises what
    went wrong at the end (ParamsError at once); what was measured stays, and the same call continues.
    """
    runs = _runs(profiles, out)
    servers: list[Server] = []
    try:
        _start([run for run in runs if run.waiting()], servers, progress)
        _take_turns([run for run in runs if run.running], rounds, progress)
    finally:
        stop_together(servers, progress=progress)
    for run in runs:
        for arm in ARMS:
            if arm not in run.errors and LEFT_FOR_OWN in arm_state(run.out, run.profile, arm).message:
                progress(f"{run.name}/{arm}: experiments on servers of their own")
                _visit(run, arm, "own", {"attach": ALONE}, progress)
    _raise([error for run in runs for error in dict.fromkeys(run.errors.values())])
    return [run.out for run in runs]


def _runs(profiles: Sequence[str], out: Path | None) -> list[_Run]:
    if out and len(profiles) > 1:
        raise ParamsError("--out is one folder, for several profiles", "leave it out: each gets report/out/PROFILE")
    runs = [_Run(p, out or paths.OUT / profile_name(p), {arm: load_arm(p, arm) for arm in ARMS}) for p in profiles]
    for run in runs:
        if run.params["on"].server.launcher == "url":
            raise ParamsError(
                f"{run.profile}: server.launcher: `url` gives one server for both arms", "use `local` or `docker`"
            )
    if len({run.out for run in runs}) < len(runs):
        raise ParamsError("two profiles have one name, so one folder of records", "give each once, by different names")
    return runs


def _start(runs: Sequence[_Run], servers: list[Server], progress: Progress) -> None:
    """Start a server for each arm of each run, together where that is safe; a run that lacks one fails as a whole."""
    wanted = {
        (run.name, arm): Wanted(f"{run.name}/{arm}", run.params[arm], run.out / f"{arm}.server.log")
        for run in runs
        for arm in ARMS
    }
    together = all(can_start_together(one.params) for one in wanted.values())
    found = serve_together(list(wanted.values()), progress=progress) if together else []
    for run in runs:
        started: list[Server] = []
        for arm in ARMS:
            key = (run.name, arm)
            got = found[list(wanted).index(key)] if together else _serve(wanted[key], progress)
            if isinstance(got, Server):
                started.append(got)
                servers.append(got)
                run.running[arm] = describe(got, run.out / "running" / f"{arm}.json")
                continue
            run.fail(got)
            if not together:
                break
        if run.errors:
            progress(f"{run.name}: not measured: {next(iter(run.errors.values()))}")
            run.running.clear()
            stop_together(started, progress=progress)


def _serve(one: Wanted, progress: Progress) -> Server | ServerError:
    try:
        return serve(one.params, log_path=one.log_path, progress=named(one.name, progress))
    except ServerError as error:
        return ServerError(f"{one.name}: {error.message}", error.remedy)


def _take_turns(runs: Sequence[_Run], rounds: int, progress: Progress) -> None:
    """Visit the arms of all runs until none has anything left, or until a visit to both brings a run nothing new."""
    visit = 0
    while runs := [run for run in runs if run.waiting() and run.moved()]:
        turns = [(run, arm) for run in runs for arm in run.waiting()]
        # The order turns round at every visit, so that nobody is always the first.
        for run, arm in turns if visit % 2 == 0 else reversed(turns):
            progress(f"visit {visit}: {run.name}/{arm}")
            _visit(run, arm, str(visit), {"rounds": rounds, "attach": str(run.running[arm])}, progress)
        visit += 1


def _visit(run: _Run, arm: str, name: str, parameters: dict[str, object], progress: Progress) -> None:
    """Let measure.ipynb measure an arm once; an arm that fails is not visited again."""
    given = {"profile": run.profile, "arm": arm, "out": str(run.out), **parameters}
    try:
        execute(MEASURE, run.out / f"measure.{arm}.{name}.ipynb", given)
    except PrefixkitError as error:
        progress(f"{run.name}/{arm}: {error}")
        run.fail(error, arm)


def _waits(out: Path, profile: str, arm: str) -> bool:
    """Return whether an arm has something left to measure on its own server."""
    state = arm_state(out, profile, arm)
    return state.needs_run and LEFT_FOR_OWN not in state.message


def _raise(errors: Sequence[PrefixkitError]) -> None:
    if len(errors) > 1:
        raise InterleaveError("; ".join(error.message for error in errors), errors[0].remedy)
    for error in errors:
        raise error
