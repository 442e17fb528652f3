"""Run a notebook with papermill, and refuse one that would run with other parameters than it was given."""

from __future__ import annotations

import ast
import contextlib
import logging
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets import default

from prefixkit import paths
from prefixkit.errors import ParamsError, PrefixkitError

MEASURE = paths.NOTEBOOKS / "measure.ipynb"
SAVE_EVERY_S = 5.0
_INJECTED = "# Parameters\n"


class EncryptedKernelManager(AsyncKernelManager):
    """A kernel whose sockets nobody else on this machine can read; without it ipykernel warns at every start."""

    @default("transport_encryption")
    def _encrypt_where_possible(self) -> str:
        return "auto"


class SparingEngine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine, writing the notebook every few seconds and at the end, not after every cell.

    A report's figures make each write dearer than the cell before it; records, not notebooks, keep what is measured.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
        """Run the notebook that `nb_man` manages."""
        save, last = nb_man.save, -SAVE_EVERY_S

        def save_sometimes(**given: Any) -> None:
            nonlocal last
            if time.monotonic() - last >= SAVE_EVERY_S:
                save(**given)
                last = time.monotonic()

        nb_man.save = save_sometimes
        return super().execute_managed_notebook(nb_man, kernel_name, **options)


papermill_engines.register("sparing", SparingEngine)


class NotebookError(PrefixkitError):
    """A notebook that stopped in the middle."""


def _assigned(source: str) -> set[str]:
    """Return the names that top-level statements of a cell assign."""
    names: set[str] = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            names.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
    return names


def check_parameters(notebook: Path, parameters: Mapping[str, Any]) -> None:
    """Raise ParamsError unless the notebook has a cell tagged `parameters` that assigns every one of `parameters`."""
    cells = nbformat.read(notebook, as_version=4).cells  # type: ignore[no-untyped-call]
    tagged = [c for c in cells if c.cell_type == "code" and "parameters" in c.metadata.get("tags", [])]
    if not tagged:
        raise ParamsError(
            f"{notebook}: no cell is tagged `parameters`, so what is passed would have no effect",
            "tag its first code cell `parameters`",
        )
    known = set().union(*(_assigned(cell.source) for cell in tagged))
    if unknown := sorted(set(parameters) - known):
        raise ParamsError(f"{notebook}: unknown parameter {unknown[0]!r}", f"it takes: {', '.join(sorted(known))}")


def check_injected(cells: list[str], known: set[str]) -> None:
    """Raise ParamsError when papermill, called by hand, passed what the running notebook does not read.

    `cells` are the sources that this kernel ran, first first (IPython's `In`).
    """
    sources = [source for source in cells if source.strip()]
    for number, source in enumerate(sources):
        if not source.startswith(_INJECTED):
            continue
        injected = _assigned(source)
        if unknown := sorted(injected - known):
            raise ParamsError(f"unknown parameter {unknown[0]!r}", f"the notebook takes: {', '.join(sorted(known))}")
        if any(injected & _assigned(later) for later in sources[number + 1 : -1]):
            raise ParamsError(
                "the notebook's own values replaced the parameters that were passed",
                "tag its first code cell `parameters`",
            )


def check_here(*known: str) -> None:
    """Raise ParamsError when the notebook that calls this was given parameters that it does not read."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is not None:
        check_injected(list(shell.user_ns.get("In", [])), set(known))


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does, so that the kernel, and with it the server, is shut down."""

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)


def execute(notebook: Path, output: Path, parameters: Mapping[str, Any], *, show_output: bool = True) -> None:
    """Run `notebook` with papermill in this interpreter's kernel and write `output` as it goes.

    Raises ParamsError before anything starts, NotebookError when a cell fails or the kernel dies.
    """
    check_parameters(notebook, parameters)
    output.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("papermill").setLevel(logging.ERROR)
    stream = sys.stdout if show_output else None
    with _terminate_as_interrupt():
        try:
            papermill.execute_notebook(
                notebook,
                output,
                dict(parameters),
                kernel_name="python3",
                language="python",
                cwd=paths.NOTEBOOKS,
                progress_bar=False,
                stdout_file=stream,
                engine_name="sparing",
                kernel_manager_class=EncryptedKernelManager,
                start_timeout=120,
                iopub_timeout=60,
            )
        except PapermillExecutionError as error:
            raise NotebookError(
                f"{notebook.name}: cell {error.exec_count}: {error.ename}: {error.evalue}", f"see {output}"
            ) from None
        except (RuntimeError, TimeoutError) as error:  # nbclient: the kernel died or did not answer
            raise NotebookError(f"{notebook.name}: {error}", f"see {output}") from None
