"""Measure both arms side by side: two servers held open, measure.ipynb attached to each in turn, round by round.

Slow drift of a machine (clocks, temperature, neighbours) then falls on both arms alike. Needs room for two servers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import yaml

from prefixkit.errors import ParamsError
from prefixkit.experiments import arm_state
from prefixkit.notebook import execute
from prefixkit.params import find, load_arm
from prefixkit.run import MEASURE, output_folder
from prefixkit.server import Server, serve

ARMS = ("off", "on")


def interleave(
    profile: str, out: Path | None = None, *, rounds: int = 1, progress: Callable[[str], object] = print
) -> Path:
    """Measure arms off and on of `profile`, `rounds` rounds of `length` a visit; return the folder of the records.

    Raises ParamsError, ServerError or NotebookError; what was measured stays, and the same call continues.
    """
    out = out or output_folder(profile)
    params = {arm: load_arm(profile, arm) for arm in ARMS}
    if params["on"].server.launcher == "url":
        raise ParamsError(
            f"{profile}: server.launcher: `url` gives one server for both arms", "use `local` or `docker`"
        )
    with ExitStack() as stack:
        attached = {}
        for arm in ARMS:
            server = stack.enter_context(serve(params[arm], log_path=out / f"{arm}.server.log", progress=progress))
            attached[arm] = _attached_profile(profile, server, out / "attached" / arm)
        visit = 0
        while waiting := [arm for arm in ARMS if arm_state(out, attached[arm], arm).needs_run]:
            # The order turns round at every visit, so that neither arm is always the first.
            for arm in waiting if visit % 2 == 0 else reversed(waiting):
                progress(f"visit {visit}: arm {arm}")
                parameters = {"profile": str(attached[arm]), "arm": arm, "out": str(out), "rounds": rounds}
                execute(MEASURE, out / f"measure.{arm}.{visit}.ipynb", parameters)
            visit += 1
    return out


def _attached_profile(profile: str, server: Server, folder: Path) -> Path:
    """Write the profile with the running server's address in place of how to start one; return its file."""
    path = find(profile)
    data = yaml.safe_load(path.read_text("utf-8"))
    data["server"] = {
        **data.get("server", {}),
        "launcher": "url",
        "url": server.url,
        "metrics_urls": list(server.metrics_urls),
    }
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / path.name
    target.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), "utf-8")
    return target
