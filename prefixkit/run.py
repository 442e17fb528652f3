"""`make report`: measure the arms that are not yet measured, then render the article."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ParamsError
from prefixkit.experiments import arm_state
from prefixkit.notebook import MEASURE, NotebookError, check_parameters, execute
from prefixkit.params import ARMS, Params, load_arm, profile_name
from prefixkit.render import RENDERED, render_report, report_notebook

ORDER = ("off", "on", "cloud")
Progress = Callable[[str], object]


def output_folder(profile: str) -> Path:
    """Return where a profile's results are built."""
    return paths.OUT / profile_name(profile)


def check(profile: str, arms: Iterable[str]) -> dict[str, Params]:
    """Return the parameters of each arm, in measuring order; raise before anything expensive starts."""
    wanted = list(arms)
    if unknown := sorted(set(wanted) - set(ARMS)):
        raise ParamsError(
            f"unknown arm {unknown[0]!r} in ARMS", f'one or more of: {" ".join(ARMS)}, as in ARMS="on off"'
        )
    params = {arm: load_arm(profile, arm) for arm in ORDER if arm in wanted}
    if not params:
        raise ParamsError("ARMS names no arm", 'for example ARMS="on off cloud"')
    _check_program(next(iter(params.values())), profile)
    check_parameters(MEASURE, dict.fromkeys(("profile", "arm", "out")))
    check_parameters(report_notebook(next(iter(params.values())).report.lang), dict.fromkeys(("data", "out", "lang")))
    return params


def _check_program(params: Params, profile: str) -> None:
    program = params.server.command[0]
    if params.server.launcher == "local" and "/" in program and not (paths.ROOT / program).exists():
        raise ParamsError(
            f"{profile}: server.command: {program} does not exist",
            f"run `make setup PROFILE={profile}`, or mend the path",
        )


def measure(profile: str, arm: str, out: Path, progress: Progress = print) -> None:
    """Run measure.ipynb for one arm; what it measures is on disk whatever happens."""
    progress(f"measuring arm {arm} of {profile}: {out / (arm + '.jsonl')}")
    execute(MEASURE, out / f"measure.{arm}.ipynb", {"profile": profile, "arm": arm, "out": str(out)})


def report(profile: str, arms: Iterable[str], progress: Progress = print) -> int:
    """Bring the article of `profile` up to date; return 0, or 1 when an arm failed or was refused."""
    params = check(profile, arms)
    out = output_folder(profile)
    failed = {arm: reason for arm in params if (reason := _bring_up_to_date(profile, arm, out, progress))}
    if any((out / f"{arm}.jsonl").is_file() for arm in ORDER):
        article(profile, out, next(iter(params.values())), progress)
    for arm, reason in failed.items():
        progress(f"arm {arm} is not measured: {reason}")
    return int(bool(failed))


def _bring_up_to_date(profile: str, arm: str, out: Path, progress: Progress) -> str:
    """Measure an arm unless it is measured already; return why it failed or was refused, or nothing."""
    state = arm_state(out, profile, arm)
    progress(f"arm {arm}: {state.message}")
    if state.needs_run:
        try:
            measure(profile, arm, out, progress)
        except NotebookError as error:
            progress(f"arm {arm} failed: {error}")
            return str(error)
        state = arm_state(out, profile, arm)
    return state.message if state.refused else ""


def article(profile: str, out: Path, params: Params, progress: Progress = print) -> None:
    """Execute the report notebook on the records in `out` and render it, unless nothing that it shows has changed."""
    marker = out / ".rendered"
    state = _inputs(out, params)
    if marker.is_file() and marker.read_text() == state and all((out / name).is_file() for name in RENDERED):
        progress(f"article: up to date, {out / 'report.html'}")
        return
    marker.unlink(missing_ok=True)
    render_report(out, out, params.report)
    marker.write_text(_inputs(out, params))
    progress(f"article of {profile}: {out / 'report.html'} and {out / 'report.pdf'}")


def _inputs(out: Path, params: Params) -> str:
    """Hash what the article depends on: records, its notebook, `report` parameters and this package."""
    files = [
        *sorted(out.glob("*.jsonl")),
        report_notebook(params.report.lang),
        *sorted(p for p in (paths.ROOT / "prefixkit").rglob("*") if p.is_file() and p.suffix != ".pyc"),
        *sorted(paths.REPORT.glob("*.bib")),
    ]
    total = hashlib.sha256(params.report.model_dump_json().encode())
    for file in files:
        total.update(file.name.encode())
        total.update(file.read_bytes())
    return total.hexdigest()
