"""Several stand-ins started at the same time: side by side, named, and none left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from prefixkit.errors import ServerError
from prefixkit.params import Params
from prefixkit.server import Server, ports, start
from prefixkit.server.together import Wanted, can_start_together, serve_together, stop_together

Make = Callable[..., Params]


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize(
    ("engine_args", "together"),
    [
        ({"kv_cache_memory_bytes": 1024}, True),
        ("--kv-cache-memory-bytes 1024", True),
        (["--kv-cache-memory-bytes=1024"], True),
        ({"gpu_memory_utilization": 0.4}, False),
    ],
)
def test_a_given_number_of_bytes_lets_servers_start_together(stand_in: Make, engine_args, together: bool) -> None:
    assert can_start_together(stand_in(engine_args=engine_args)) is together


def wanted(stand_in: Make, tmp_path: Path, **modes: str) -> list[Wanted]:
    found = []
    for name, mode in modes.items():
        folder = tmp_path / name
        folder.mkdir()
        env = {"STAND_IN_DIR": str(folder), "STAND_IN_GO": str(tmp_path / "go"), "STAND_IN_LOG": str(tmp_path / "said")}
        found.append(Wanted(name, stand_in(mode, env=env), folder / "server.log"))
    (tmp_path / "said").write_text("ValueError: no room\n")
    return found


def test_nobody_waits_for_another_ones_start(stand_in: Make, tmp_path: Path, left: Callable[[], set[Server]]) -> None:
    lines: list[str] = []
    starting = set()

    def progress(line: str) -> None:
        lines.append(line)
        if "starting vLLM" in line:
            starting.add(line.split(": ")[0])
        if len(starting) == 2:  # both are under way before either may serve
            (tmp_path / "go").touch()

    servers = serve_together(wanted(stand_in, tmp_path, a="silent", b="silent"), progress=progress)
    assert all(isinstance(server, Server) and server.alive for server in servers)
    ready = [server for server in servers if isinstance(server, Server)]
    assert len({server.port for server in ready}) == 2
    assert all(line.startswith(("a: ", "b: ")) for line in lines)
    stop_together(ready)
    assert not left() and all(ports.is_free(server.port) for server in ready)


def test_one_that_fails_is_named_and_the_others_are_ready(stand_in: Make, tmp_path: Path) -> None:
    first, second = serve_together(wanted(stand_in, tmp_path, good="ready", bad="die"), progress=quiet)
    assert isinstance(first, Server) and first.alive
    assert isinstance(second, ServerError) and second.message.startswith("bad: ") and "no room" in second.message
    stop_together([first])


def test_each_has_a_compile_cache_of_its_own(stand_in: Make, tmp_path: Path) -> None:
    servers = serve_together(wanted(stand_in, tmp_path, a="ready", b="ready"), progress=quiet)
    stop_together([server for server in servers if isinstance(server, Server)])
    environments = [(tmp_path / name / "environ.json").read_text() for name in ("a", "b")]
    assert "together/a" in environments[0] and "together/b" in environments[1]


def test_what_breaks_one_start_ends_them_all(
    stand_in: Make, tmp_path: Path, left: Callable[[], set[Server]], monkeypatch: pytest.MonkeyPatch
) -> None:
    both_wait = threading.Barrier(2, timeout=30)
    begin = start.start_locked

    def start_locked(params: Params, log_path: Path, *rest, **more):
        both_wait.wait()
        if log_path.parent.name == "a":
            raise RuntimeError("a mistake")
        return begin(params, log_path, *rest, **more)

    monkeypatch.setattr(start, "start_locked", start_locked)
    with pytest.raises(RuntimeError, match="a mistake"):
        serve_together(wanted(stand_in, tmp_path, a="ready", b="ready"), progress=quiet)
    assert not left()


def test_a_port_that_somebody_else_took_meanwhile_is_worth_a_second_start(stand_in: Make, tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(ServerError, match="Errno 98"):
        start.serve(stand_in("late-bind"), log_path=tmp_path / "a.log", progress=lines.append)
    assert sum("starting once more" in line for line in lines) == 1
    assert sum("starting vLLM" in line for line in lines) == 2
