"""Real vLLM: started twice at once, asked what it is, killed, and gone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from prefixkit import paths, serve
from prefixkit.errors import ServerError
from prefixkit.params import Params
from prefixkit.server import Server, guard, ports
from tests.conftest import real_params

pytestmark = pytest.mark.real

# A notebook kernel that starts a server, tells about it, and lives on.
KERNEL = """
import json, signal, sys
from prefixkit.params import Params
from prefixkit import serve
params = Params.model_validate_json(sys.argv[1])
server = serve(params, log_path=sys.argv[2], progress=lambda line: print(line, file=sys.stderr, flush=True))
print(json.dumps({**server.summary(), "guard": server._process.guard.pid}), flush=True)
signal.pause()
"""
DOCKER = """#!{python}
import os, signal, subprocess, sys
from pathlib import Path
here, words = Path({here!r}), sys.argv[1:]
if words[0] == "run":
    name, image = words[words.index("--name") + 1], words.index("vllm/vllm-openai:latest")
    flags = [{model!r} if w == "/models/smollm2-135m-instruct" else w for w in words[image + 1:]]
    env = dict(os.environ, **dict(w.split("=", 1) for b, w in zip(words, words[1:]) if b == "-e" and "=" in w))
    command = [{vllm!r}, "-m", "vllm.entrypoints.openai.api_server", *flags]
    child = subprocess.Popen(command, env=env, start_new_session=True)
    (here / name).write_text(str(child.pid))
    sys.exit(child.wait())
if words[0] == "rm" and (here / words[-1]).exists():
    os.killpg(int((here / words[-1]).read_text()), signal.SIGKILL)
    (here / words[-1]).unlink()
if words[0] == "ps":
    print(*[p.name for p in here.glob("prefixkit-*")])
"""


def small(arm: str, **server: object) -> Params:
    """Return the embedded model's parameters with a small cache, and with vLLM's reset path."""
    params = real_params(arm)
    env = {**params.server.env, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_SERVER_DEV_MODE": "1"}
    return params.model_copy(update={"server": params.server.model_copy(update={"env": env, **server})})


@dataclass
class Pair:
    """A server of this process and one of another kernel, started at the same time; `lines` is what both said."""

    own: Server
    kernel: subprocess.Popen[str]
    other: dict[str, object]
    lines: list[str]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    # The worker in a process of its own, so that there is one to end.
    workers = {**real_params("off").server.engine_args, "distributed_executor_backend": "mp"}
    folder = tmp_path_factory.mktemp("servers here")
    words = [sys.executable, "-c", KERNEL, small("off", engine_args=workers).model_dump_json(), str(folder / "off.log")]
    kernel = subprocess.Popen(words, cwd=paths.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert kernel.stdout and kernel.stderr
    lines: list[str] = []
    errors, told = kernel.stderr, threading.Event()

    def read() -> None:
        for line in errors:
            lines.append(f"other: {line.strip()}")  # one by one: this process appends too
            if line.startswith("ready after"):
                told.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        with serve(small("on"), log_path=folder / "on.log", progress=lambda line: lines.append(f"own: {line}")) as own:
            other = json.loads(kernel.stdout.readline())
            assert told.wait(60), lines
            yield Pair(own, kernel, other, lines)
    finally:
        kernel.kill()
        kernel.communicate()


def vllm_processes(guard_pid: int) -> dict[int, str]:
    """Return the processes of one server and their titles."""
    found = {}
    for pid in guard.descendants(guard_pid):
        with contextlib.suppress(psutil.Error):
            found[pid] = " ".join(psutil.Process(pid).cmdline())
    return found


def test_two_starts_at_once_happen_one_after_the_other(pair: Pair) -> None:
    order = [line.split()[0] for line in pair.lines if " starting vLLM" in line or " ready after" in line]
    assert order in (["own:", "own:", "other:", "other:"], ["other:", "other:", "own:", "own:"])
    assert any("waiting: another server is starting" in line for line in pair.lines)


def test_each_arm_says_itself_what_it_is(pair: Pair) -> None:
    own, other = pair.own.effective, pair.other["effective"]
    assert isinstance(other, dict)
    assert (own.enable_prefix_caching, other["enable_prefix_caching"]) == (True, False)
    assert (own.block_size, own.dtype, own.max_model_len, own.engines) == (32, "bfloat16", 3072, 1)
    assert own.vllm == "0.32.0" and own.kv_capacity_tokens and own.kv_capacity_tokens > 40_000
    assert {key: other[key] for key in ("block_size", "dtype", "vllm")} == {
        "block_size": 32, "dtype": "bfloat16", "vllm": "0.32.0"
    }  # fmt: skip
    stages = " ".join(pair.lines)
    assert "loading weights" in stages and "one token was generated" in stages


def test_a_reset_of_the_real_cache_is_confirmed_by_a_miss(pair: Pair) -> None:
    found = pair.own.reset_prefix_cache()
    assert (found.status, found.hits) == ("cleared", 0)


def test_a_killed_kernel_leaves_no_process_and_a_free_port(pair: Pair, gone: Callable[[int], bool]) -> None:
    guard_pid = pair.other["guard"]
    assert isinstance(guard_pid, int)
    ours = vllm_processes(guard_pid)
    assert any("EngineCore" in title for title in ours.values()) and any("Worker" in t for t in ours.values())
    pair.kernel.kill()
    assert all(gone(pid) for pid in [*ours, guard_pid])
    assert ports.is_free(int(str(pair.other["url"]).split(":")[2].split("/")[0]))
    assert pair.own.alive
    pair.own.check()


def test_a_killed_api_process_leaves_no_engine(pair: Pair, gone: Callable[[int], bool]) -> None:
    server = pair.own
    assert server._process and server.pid
    ours = vllm_processes(server._process.guard.pid)
    assert any("EngineCore" in title for title in ours.values())
    os.kill(server.pid, signal.SIGKILL)
    assert server._process.wait(10)
    assert all(gone(pid) for pid in ours)
    with pytest.raises(ServerError, match=r"vLLM 0.32.0 died \(killed by signal 9"):
        server.check()
    server.stop()
    assert ports.is_free(server.port)


def test_a_container_with_a_real_server_is_gone_after_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    params = small("on", launcher="docker")
    weights = paths.MODELS / params.model.name
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    vllm = str(paths.ROOT / params.server.command[0])
    program.write_text(DOCKER.format(python=sys.executable, here=str(tmp_path), model=str(weights), vllm=vllm))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with serve(params, log_path=tmp_path / "a.log") as server:
        assert server.effective.enable_prefix_caching is True
        name = server.argv[server.argv.index("--name") + 1]
        inside = int((tmp_path / name).read_text())
    assert gone(inside) and not (tmp_path / name).exists() and ports.is_free(server.port)
