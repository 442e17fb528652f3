"""The tour as a person meets it: JupyterLab in a browser, restart and run all on real vLLM, export by the menu."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest

from prefixkit import paths
from prefixkit.server import ports
from tests.browser.chromium import Chromium, program, until
from tests.conftest import real_params

RUN_S = 240.0
CODE = "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell')]"
IDLE = "!!document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=\"idle\"]')"
PROMPTS = f"{CODE}.map(cell => cell.querySelector('.jp-InputPrompt').textContent)"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(program() is None, reason="no Chromium on PATH: `make test-browser` installs it"),
]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Run JupyterLab on a copy of the notebooks, with no settings of this user's; return its address."""
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks")
    port = ports.choose("auto")
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={tmp_path / 'notebooks'}"]
    command += ["--IdentityProvider.token=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    folders = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    private = {f"JUPYTER_{name}": str(tmp_path / "jupyter" / name) for name in folders}
    private["IPYTHONDIR"] = str(tmp_path / "ipython")
    private |= {f"JUPYTERLAB_{name}_DIR": str(tmp_path / "jupyter" / name) for name in ("SETTINGS", "WORKSPACES")}
    with (tmp_path / "lab.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **private}, stdout=log, stderr=log)
    try:
        until(lambda: answers(f"{url}/api", process), "JupyterLab to answer", 120)
        yield url
    finally:
        left = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.wait(60)
        alive = psutil.wait_procs(left, timeout=60)[1]
        assert alive == [], f"left behind by JupyterLab: {alive}"


def answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Return whether something answers; fail when the process has ended."""
    assert process.poll() is None, "JupyterLab ended"
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except OSError:
        return False


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    """Return a browser; a test that fails leaves what its window showed."""
    chromium = Chromium(tmp_path)
    try:
        yield chromium
    finally:
        with contextlib.suppress(AssertionError, OSError, queue.Empty):
            chromium.screenshot(tmp_path / "window.png")
        chromium.close()


def menu(browser: Chromium, *path: str) -> None:
    """Choose an entry of the menu bar."""
    browser.click(".lm-MenuBar-item", path[0])
    for label in path[1:]:
        browser.click(".lm-Menu-itemLabel", label)


def test_the_tour_runs_in_jupyterlab_and_exports_by_the_menu(lab: str, browser: Chromium, tmp_path: Path) -> None:
    real_params("on")
    browser.open(f"{lab}/lab/tree/explore.ipynb")
    browser.wait(f"{CODE}.length > 5 && {IDLE}", "the notebook and its kernel", 120)

    menu(browser, "Kernel", "Restart Kernel and Run All Cells…")
    browser.click(".jp-Dialog button", "Restart")
    browser.wait(f"{PROMPTS}.some(text => text === '[*]:')", "a cell to run")
    done = f"{PROMPTS}.every(text => /^\\[\\d+\\]:$/.test(text))"
    # Tracebacks are shown like any text on stderr; the tour has neither.
    failed = "document.querySelector('[data-mime-type=\"application/vnd.jupyter.stderr\"]')?.textContent"
    browser.wait(f"{done} || {failed}", "all cells to finish", RUN_S)
    assert browser.evaluate(failed) is None

    shown = "document.querySelectorAll('.jp-OutputArea-output table').length"
    assert browser.evaluate(shown) >= 4
    browser.evaluate("document.querySelector('.jp-OutputArea-output img').scrollIntoView()")
    picture = "[...document.querySelectorAll('.jp-OutputArea-output img')].map(i => i.naturalWidth * i.clientWidth)"
    assert min(browser.wait(picture, "the figure")) > 0
    browser.screenshot(tmp_path / "figure.png")

    menu(browser, "File", "Save and Export Notebook As", "Article_html")
    page = browser.downloaded("explore.html").read_text("utf-8")
    assert "<script" not in page
    assert "A hands-on tour" in page and "data:image/svg+xml" in page and "<table" in page
    menu(browser, "File", "Save and Export Notebook As", "Article_pdf")
    assert browser.downloaded("explore.pdf").read_bytes().startswith(b"%PDF-")

    saved = nbformat.read(tmp_path / "notebooks" / "explore.ipynb", 4)
    outputs = [output for cell in saved.cells for output in cell.get("outputs", [])]
    assert {output.output_type for output in outputs} <= {"stream", "execute_result", "display_data"}
    assert "ready after" in "".join(o.text for o in outputs if o.output_type == "stream" and o.name == "stdout")
