"""`python -m prefixkit serve` in the foreground."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from prefixkit.__main__ import main
from prefixkit.server import ports

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).with_name("stand_in.py")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    server = {"command": [sys.executable, str(STAND_IN), "ready"], "env": {"STAND_IN_DIR": str(tmp_path)}}
    path.write_text(yaml.safe_dump({"model": {"name": "fake", "path": "fake/model"}, "server": server}))
    return path


@pytest.fixture
def foreground(profile: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the command in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "prefixkit", "serve", "--profile", str(profile), *words]
        env = {**os.environ, "TMPDIR": str(tmp_path)}  # its own start lock
        with (tmp_path / "stderr").open("w") as errors:
            child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_leaves_nothing(
    foreground: Callable[..., subprocess.Popen[str]],
    number: signal.Signals,
    gone: Callable[[int], bool],
    read_pid: Callable[[str], int],
) -> None:
    port = ports.choose("auto")
    child = foreground("--arm", "on", "--port", str(port), "--json")
    assert child.stdout
    found = json.loads(child.stdout.readline())
    assert found["url"] == f"http://127.0.0.1:{port}/v1" and found["effective"]["enable_prefix_caching"] is True
    assert found["pid"] == read_pid("main")
    child.send_signal(number)
    assert child.stdout.read() == "" and child.wait(30) == 0
    assert gone(found["pid"]) and ports.is_free(port)


def test_a_server_that_dies_ends_it_with_one(foreground: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    child = foreground("--arm", "off", "--json")
    assert child.stdout
    os.kill(json.loads(child.stdout.readline())["pid"], signal.SIGKILL)
    assert child.stdout.read() == "" and child.wait(30) == 1
    assert "killed by signal 9" in (tmp_path / "stderr").read_text()


def test_a_failure_is_one_json_object(profile: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = profile.read_text().replace(sys.executable, str(tmp_path / "nothing"))
    profile.write_text(text)
    assert main(["serve", "--profile", str(profile), "--arm", "on", "--json"]) == 1
    assert "does not exist" in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("words", [["--arm", "cloud"], ["--arm", "on", "--port", "0"], ["--arm", "on", "--port", "x"]])
def test_bad_arguments_are_refused(words: list[str]) -> None:
    assert main(["serve", "--profile", "cpu", *words]) == 2
