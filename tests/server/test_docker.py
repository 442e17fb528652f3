"""The `docker run` command line, and a container's life with a stand-in `docker`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixkit.errors import ServerError
from prefixkit.params import Params, load_params
from prefixkit.server import docker, serve

ROOT = Path(__file__).parents[2]

# Like Docker: `run` only waits for a container that lives elsewhere; `rm -f` ends it; `ps` lists what is there.
DOCKER = """#!{python}
import os, re, signal, subprocess, sys
from pathlib import Path
here, words = Path({here!r}), sys.argv[1:]
if words[0] == "run":
    image = next(i for i, w in enumerate(words) if w.startswith("vllm/vllm-openai"))
    name = words[words.index("--name") + 1]
    flags = [w for w in words[image + 1:]]
    flags[flags.index("--host") + 1] = "127.0.0.1"
    env = {{**os.environ, "STAND_IN_DIR": str(here)}}
    child = subprocess.Popen([{python!r}, {stand_in!r}, "stubborn", *flags], env=env, start_new_session=True)
    (here / name).write_text(str(child.pid))
    sys.exit(child.wait())
if words[0] == "rm":
    path = here / words[-1]
    (here / "removed").write_text(words[-1])
    if path.exists():
        os.kill(int(path.read_text()), signal.SIGKILL)
        path.unlink()
if words[0] == "ps":
    name = re.search("prefixkit-[^$]*", words[-1]).group()
    print("abc" if (here / name).exists() else "")
"""


def params(**server: Any) -> Params:
    return load_params(
        model={"name": "m", "path": "/MODEL"},
        enable_prefix_caching=True,
        server={"launcher": "docker", "ready_timeout_s": 60.0, **server},
    )


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    stand_in = str(Path(__file__).with_name("stand_in.py"))
    program.write_text(DOCKER.format(python=sys.executable, here=str(tmp_path), stand_in=stand_in))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    yield tmp_path


def test_the_command_line_is_the_one_of_vllms_image(box: Path) -> None:
    given = params(
        docker={"image": "vllm/vllm-openai:v0.9.2", "volumes": {"/data/qwen": "/MODEL"}},
        engine_args={
            "dtype": "float16", "max_parallel_loading_workers": 1, "max_model_len": 8192, "enforce_eager": True,
            "enable_per_request_metrics": True,
        },
        env={"VLLM_LOGGING_LEVEL": "INFO"},
    )  # fmt: skip
    made = docker.command(given, 9000, dict(os.environ), with_key=True)
    name = made.argv[made.argv.index("--name") + 1]
    assert made.argv == (
        str(box / "bin" / "docker"), "run", "--rm", "--name", name,
        "--runtime", "nvidia", "--gpus", "all", "--ipc=host", "-p", "9000:9000", "-v", "/data/qwen:/MODEL",
        "-e", "VLLM_LOGGING_LEVEL=INFO", "-e", "VLLM_API_KEY",
        "vllm/vllm-openai:v0.9.2", "--model", "/MODEL", "--host", "0.0.0.0", "--port", "9000",
        "--served-model-name", "m", "--enable-prefix-caching",
        "--dtype", "float16", "--max-parallel-loading-workers", "1", "--max-model-len", "8192", "--enforce-eager",
    )  # fmt: skip
    assert made.version == "0.9.2" and "per-request-metrics left out" in made.notes[0]
    assert made.cleanup == ((made.argv[0], "rm", "-f", name),)


@pytest.mark.usefixtures("box")
def test_a_local_model_folder_is_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "weights" / "qwen 7b"
    folder.mkdir(parents=True)
    model = {"name": "m", "path": str(folder)}
    given = load_params(model=model, server={"launcher": "docker"})
    argv = docker.command(given, 9000, dict(os.environ), with_key=False).argv
    assert f"{folder}:/models/qwen 7b" in argv and argv[argv.index("--model") + 1] == "/models/qwen 7b"
    volumes = {"volumes": {str(folder.parent): "/w"}}
    given = load_params(model=model, server={"launcher": "docker", "docker": volumes})
    argv = docker.command(given, 9000, dict(os.environ), with_key=False).argv
    assert argv[argv.index("--model") + 1] == "/w/qwen 7b"


@pytest.mark.usefixtures("box")
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"docker": {"image": "vllm/vllm-openai:v0.6.3"}}, "too old.*newer tag"),
        ({"config_file": True}, "launcher `local`"),
        ({"engine_args": ["serve", "--enforce-eager"]}, "before any flag"),
    ],
)
def test_what_cannot_work_in_a_container_is_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ServerError, match=reason):
        docker.command(params(**given), 9000, dict(os.environ), with_key=False)


def test_without_docker_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="docker is not on PATH"):
        docker.command(params(), 9000, dict(os.environ), with_key=False)


def test_stopping_means_that_the_container_is_gone(
    box: Path, gone: Callable[[int], bool], read_pid: Callable[[str], int]
) -> None:
    with serve(params(), log_path=box / "a.log", progress=lambda _: None) as server:
        assert server.effective.enable_prefix_caching is True
        inside = read_pid("main")
    assert gone(inside) and (box / "removed").read_text() == server.argv[server.argv.index("--name") + 1]


def test_a_killed_notebook_leaves_no_container(
    box: Path, gone: Callable[[int], bool], read_pid: Callable[[str], int]
) -> None:
    code = f"""
import signal
from pathlib import Path
from prefixkit import load_params, serve
from prefixkit.server import lock
lock.lock_path = lambda: Path({str(box / "other.lock")!r})
serve(load_params(model={{"name": "m", "path": "/MODEL"}}, enable_prefix_caching=True,
                  server={{"launcher": "docker"}}), log_path={str(box / "a.log")!r})
signal.pause()
"""
    kernel = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        inside = read_pid("main")
    finally:
        kernel.send_signal(signal.SIGKILL)
        kernel.wait()
    assert gone(inside)
