"""The requests of `frontend` on servers with other settings, one server a setting: does it take the time away?

Arm on only; `condition.setting` names the setting. One that this vLLM does not know is skipped with its reason.
"""

from __future__ import annotations

from prefixkit.experiments.frontend import cell_name, visits
from prefixkit.experiments.own_server import changed_server, with_engine_args
from prefixkit.experiments.session import Session

NAME = "tuning"


def run(session: Session) -> None:
    """Measure every setting that is not measured yet, each on its own server."""
    tuning, frontend = session.params.experiments.tuning, session.params.experiments.frontend
    assert tuning
    if not frontend:
        session.skip(NAME, "needs the lengths of experiments.frontend, which is switched off")
        return
    cells = [(target, number) for target in frontend.lengths for number in range(frontend.repeats)]
    for name, setting in tuning.settings.items():
        if all(session.is_finished(cell_name(NAME, name, *cell)) for cell in cells):
            continue
        changed = with_engine_args(session.params, **setting.engine_args)
        server = changed.server.model_copy(update={"env": {**changed.server.env, **setting.env}})
        changed = changed.model_copy(update={"server": server})
        with changed_server(session, NAME, f"{NAME}-{name}", changed) as failed:
            if failed is None:
                visits(session, frontend, NAME, name)
