"""Notebooks: the committed ones are clean, and none runs with other parameters than it was given."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from prefixkit import paths
from prefixkit.errors import ParamsError
from prefixkit.notebook import NotebookError, check_injected, check_parameters, execute

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
LONGEST_CELL = 30


def write(path: Path, *sources: str, tag: bool = True) -> Path:
    """Write a notebook of code cells; the first is tagged `parameters` if `tag`."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "my_env", "display_name": "elsewhere", "language": "python"}
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if tag:
        notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, path)
    return path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_committed_notebook_is_clean_and_parameterised(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert len("".join(cell["source"]).splitlines()) <= LONGEST_CELL
    assert "parameters" in code[0]["metadata"].get("tags", [])
    for line in "".join(code[0]["source"]).splitlines():
        assignment, _, comment = line.partition("  # ")
        assert comment, f"a parameter without a comment: {line}"
        assert ": " in assignment.split("=")[0], f"a parameter without a type: {line}"


def test_a_notebook_without_a_parameters_cell_is_refused_before_it_starts(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "x = 1", tag=False)
    with pytest.raises(ParamsError, match="no cell is tagged `parameters`"):
        execute(path, tmp_path / "out.ipynb", {"x": 2})
    assert not (tmp_path / "out.ipynb").exists()


def test_a_parameter_that_the_notebook_never_reads_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "enable_prefix_caching: bool = True")
    with pytest.raises(ParamsError, match="unknown parameter 'enable_prefix_cachng'"):
        check_parameters(path, {"enable_prefix_cachng": False})


def test_parameters_injected_by_hand_are_checked_in_the_kernel() -> None:
    defaults = 'profile: str = "cpu"'
    check_injected(["", defaults, '# Parameters\nprofile = "gpu"\n', "open()"], {"profile"})
    with pytest.raises(ParamsError, match="unknown parameter 'profil'"):
        check_injected(["", defaults, '# Parameters\nprofil = "gpu"\n', "open()"], {"profile"})
    with pytest.raises(ParamsError, match="own values replaced"):
        check_injected(["", '# Parameters\nprofile = "gpu"\n', defaults, "open()"], {"profile"})


def test_a_notebook_runs_in_this_interpreter_whatever_kernel_it_was_saved_with(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "out: str = ''", "import sys; open(out, 'w').write(sys.executable)")
    execute(path, tmp_path / "out.ipynb", {"out": str(tmp_path / "who")}, show_output=False)
    import sys

    assert (tmp_path / "who").read_text() == sys.executable


def test_a_failing_cell_is_named_and_the_notebook_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "x: int = 1", "print('kept')", "raise ValueError('the reason')")
    with pytest.raises(NotebookError, match=r"n\.ipynb: cell \d+: ValueError: the reason"):
        execute(path, tmp_path / "out.ipynb", {"x": 2}, show_output=False)
    assert "kept" in (tmp_path / "out.ipynb").read_text()


def test_a_kernel_does_not_warn_of_open_sockets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    execute(write(tmp_path / "n.ipynb", "x: int = 1"), tmp_path / "out.ipynb", {"x": 2})
    captured = capfd.readouterr()
    assert "without encryption" not in captured.out + captured.err


def test_a_kernel_that_dies_is_an_error_not_a_hang(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "x: int = 1", "import os; os._exit(1)")
    with pytest.raises(NotebookError, match=r"n\.ipynb"):
        execute(path, tmp_path / "out.ipynb", {"x": 2}, show_output=False)


def test_a_flood_of_output_does_not_stop_a_run(tmp_path: Path) -> None:
    path = write(tmp_path / "n.ipynb", "x: int = 1", "for i in range(200_000): print('a short line', i)")
    execute(path, tmp_path / "out.ipynb", {"x": 2}, show_output=False)
    assert "a short line 199999" in (tmp_path / "out.ipynb").read_text()
