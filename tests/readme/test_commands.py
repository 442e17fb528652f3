"""Every command of the documentation, taken from its text, is run; a new one without a row in `ROWS` fails.

A row says how commands of its kind are run; where the last column gives a reason, the command cannot be run here and
the row runs the nearest to it that can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.readme import nearest, runs
from tests.readme.commands import Command, commands
from tests.readme.desk import Desk

COMMANDS = commands()
Run = Callable[[Desk, Command], None]


@dataclass(frozen=True, slots=True)
class Row:
    """How the commands of a kind that match a pattern as a whole are run."""

    kind: str
    pattern: str
    run: Run
    cannot: str = ""


GPU, ENGINE, NETWORK = "needs a GPU", "needs a Docker engine and a GPU", "needs a network"
ROWS = [
    Row("shell", r"git clone \S+ && cd prefixkit", runs.clone),
    Row("shell", r"make help", runs.make_help),
    Row("shell", r"make report", runs.report),
    Row("shell", r"make PYTHON=python3\.\d+ report", runs.report_with_another_python),
    Row("shell", r"make test", runs.make_test),
    Row("shell", r"make lint", runs.make_lint),
    Row("shell", r"make lab", runs.lab),
    Row("shell", r"\.venv/bin/papermill .*", runs.papermill),
    Row("shell", r"make report PROFILE=params/\w+\.yaml", runs.report_of_a_copied_profile),
    Row("shell", r"make report PROFILE=params/\w+\.yaml ARMS=on", runs.report_of_a_running_server),
    Row("yaml", r"# params/\w+\.yaml\n.*", runs.write_profile),
    Row("yaml", r"(experiments|report): .*", runs.load_parameters),
    Row("yaml", r"server: \{engine_args: .*|\{\w+: \w+\}", runs.render_flags),
    Row("yaml", r"server: \{launcher: docker, .*", nearest.docker, ENGINE),
    Row("shell", r"make doctor URL=\S+", runs.doctor),
    Row("shell", r"export \w+=.*", runs.export_and_report),
    Row("powershell", r"\$env:\w+ = .*", nearest.powershell, "needs PowerShell"),
    Row("shell", r"\.venv/bin/python -m prefixkit compare \S+ \S+", runs.compare),
    Row("shell", r'make claims CHECK=".*"', runs.claims),
    Row("shell", r"make publish NAME=\w+ PROFILE=\w+", runs.publish),
    Row("shell", r"make (article|verify) NAME=\w+", runs.published),
    Row("shell", r"\.venv/bin/python -m prefixkit serve .*", runs.serve),
    Row("shell", r"\.venv/bin/python -m prefixkit probe .*", runs.probe),
    Row("shell", r"\.venv/bin/python -m prefixkit hit-rate \S+ \S+", runs.hit_rate),
    Row("python", r"import prefixkit\n.*", runs.python),
    Row("shell", r"python -m prefixkit\.params\.document", runs.document),
    Row("shell", r"make report PROFILE=\w+", nearest.gpu_report, GPU),
    Row("shell", r"make setup PROFILE=gpu", nearest.gpu_setup, f"{GPU} and installs gigabytes"),
    Row("shell", r"\.venv/bin/python -m prefixkit interleave --profile gpu", nearest.interleave, GPU),
    Row("shell", r"conda .*", nearest.conda, f"{NETWORK} and conda"),
    Row("shell", r"apt-get install .*", nearest.system_package, f"{NETWORK} and root"),
    Row("shell", r"make test-browser", nearest.browser, f"{NETWORK}; a run with Chromium has these tests anyway"),
    Row("shell", r"make bench", nearest.bench, "takes minutes and installs its peers"),
    Row("shell", r"make lock", nearest.lock, NETWORK),
]


def rows_of(command: Command) -> list[Row]:
    """Return the rows that say how a command is run."""
    return [r for r in ROWS if r.kind == command.kind and re.fullmatch(r.pattern, command.text, re.DOTALL)]


def test_every_command_has_one_row_and_every_row_has_a_command() -> None:
    assert {f"{c.place}: {c.text}": len(rows_of(c)) for c in COMMANDS if len(rows_of(c)) != 1} == {}
    used = [row for command in COMMANDS for row in rows_of(command)]
    assert [row.pattern for row in ROWS if row not in used] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.text.splitlines()[0])
def test_a_command_of_the_documentation_does_what_it_says(command: Command, desk: Desk) -> None:
    row = next(iter(rows_of(command)), None)
    assert row, f"{command.place}: say in ROWS how `{command.text}` is run"
    if row.cannot:
        print(f"{command.text}: {row.cannot}; the nearest check is {row.run.__name__}")
    row.run(desk, command)
