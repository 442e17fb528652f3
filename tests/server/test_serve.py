"""Starting, attaching, refusing and stopping."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import prefixkit
from prefixkit.errors import ServerError
from prefixkit.params import Params, load_params
from prefixkit.server import Server, ports, serve
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm

Make = Callable[..., Params]


def quiet(_: str) -> None:
    pass


def test_a_server_is_ready_tells_its_settings_and_leaves_nothing(
    stand_in: Make, tmp_path: Path, gone: Callable[[int], bool], read_pid: Callable[[str], int]
) -> None:
    lines: list[str] = []
    with prefixkit.serve(stand_in("loading+orphan"), log_path=tmp_path / "a.log", progress=lines.append) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/v1"
        assert server.metrics_url == f"{server.root_url}/metrics"
        assert server.effective.enable_prefix_caching is True
        assert (server.effective.block_size, server.effective.kv_capacity_tokens) == (16, 1600)
        assert (server.effective.max_model_len, server.effective.vllm) == (4096, "0.32.0")
        assert server.pid == read_pid("main")
        server.check()
    assert gone(read_pid("main")) and gone(read_pid("orphan"))
    assert ports.is_free(server.port)
    assert any("still loading" in line for line in lines) and "ready after" in lines[-1]
    server.stop()


def test_the_off_arm_is_a_flag_and_is_confirmed_by_the_server(stand_in: Make, tmp_path: Path) -> None:
    with serve(stand_in(caching=False), log_path=tmp_path / "a.log", progress=quiet) as server:
        assert "--no-enable-prefix-caching" in server.argv
        assert server.effective.enable_prefix_caching is False


@pytest.mark.parametrize("caching", [True, False])
def test_a_server_that_contradicts_its_arm_is_refused_with_both_values(
    stand_in: Make, tmp_path: Path, caching: bool, gone: Callable[[int], bool], read_pid: Callable[[str], int]
) -> None:
    with pytest.raises(ServerError) as caught:
        serve(stand_in("disobey", caching=caching), log_path=tmp_path / "a.log", progress=quiet)
    assert f"enable_prefix_caching={not caching}" in str(caught.value)
    assert f"enable_prefix_caching={caching}" in str(caught.value)
    assert gone(read_pid("main"))


def test_a_server_that_dies_is_reported_with_its_root_line_version_and_log_path(stand_in: Make, tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    said.write_text(
        "(EngineCore_DP0 pid=9) ERROR 01-01 00:00:00 [core.py:1] Traceback (most recent call last):\n"
        + "(EngineCore_DP0 pid=9) ERROR 01-01 00:00:00 [core.py:1]   File x\n" * 60
        + "(EngineCore_DP0 pid=9) ERROR 01-01 00:00:00 [core.py:1] ValueError: 9.0 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (1.0 GiB). The estimated maximum model length is 1234.\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    log = tmp_path / "a b.log"
    with pytest.raises(ServerError) as caught:
        serve(stand_in("die", env={"STAND_IN_LOG": str(said)}), log_path=log, progress=quiet)
    assert "exit code 1" in caught.value.message and "9.0 GiB KV cache is needed" in caught.value.message
    assert "--max-model-len 1234" in caught.value.remedy and str(log) in caught.value.remedy


def test_an_unknown_flag_fails_at_once_with_the_parsers_line(stand_in: Make, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"exit code 2.*unrecognized arguments: --enable-reasoning"):
        serve(stand_in(engine_args={"enable_reasoning": True}), log_path=tmp_path / "a.log", progress=quiet)


def test_startup_complete_in_the_log_is_not_ready_when_the_port_could_not_be_bound(
    stand_in: Make, tmp_path: Path
) -> None:
    with pytest.raises(ServerError, match="Errno 98"):
        serve(stand_in("late-bind"), log_path=tmp_path / "a.log", progress=quiet)


def test_a_taken_port_is_seen_before_anything_is_started(stand_in: Make, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=rf"port {port} is taken by pid {os.getpid()} \("):
            serve(stand_in(port=port), log_path=tmp_path / "a.log", progress=quiet)
    assert not (tmp_path / "main.pid").exists()


def test_a_silent_start_is_waited_for_and_a_timeout_names_where_it_stands(stand_in: Make, tmp_path: Path) -> None:
    go = tmp_path / "go"
    lines: list[str] = []

    def progress(line: str) -> None:
        lines.append(line)
        if "not open yet" in line:
            go.touch()

    with serve(stand_in("silent", env={"STAND_IN_GO": str(go)}), log_path=tmp_path / "a.log", progress=progress):
        assert any("not open yet" in line for line in lines)
    go.unlink()
    with pytest.raises(ServerError, match=r"not ready after 0.3 s: port \d+ is not open yet"):
        serve(
            stand_in("silent", env={"STAND_IN_GO": str(go)}, ready_timeout_s=0.3),
            log_path=tmp_path / "a.log",
            progress=quiet,
        )


def test_a_flood_of_log_lines_goes_to_the_file_and_not_to_the_notebook(stand_in: Make, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    lines: list[str] = []
    with serve(stand_in("flood"), log_path=log, progress=lines.append):
        assert log.read_bytes().count(b"\n") > 200_000
    assert len(lines) < 20


def test_a_server_killed_by_a_signal_is_not_called_out_of_memory(stand_in: Make, tmp_path: Path) -> None:
    with serve(stand_in(), log_path=tmp_path / "a.log", progress=quiet) as server:
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        assert server._process and server._process.wait(20)
        with pytest.raises(ServerError, match=r"killed by signal 9 \(137\); OOM killer not confirmed"):
            server.check()


def test_a_server_that_asks_for_a_key_gets_the_one_that_is_named(
    stand_in: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "not-a-secret-1")
    with serve(stand_in("keyed", api_key_env="MY_SERVER_KEY"), log_path=tmp_path / "a.log", progress=quiet) as server:
        assert server.api_key == "not-a-secret-1"
        shown = repr(server) + server._repr_html_() + json.dumps(server.summary()) + (tmp_path / "a.log").read_text()
        assert "not-a-secret-1" not in shown


def test_a_key_in_the_environment_is_not_passed_on_unless_named(
    stand_in: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "not-a-secret-2")
    lines: list[str] = []
    with serve(stand_in(), log_path=tmp_path / "a.log", progress=lines.append):
        assert "VLLM_API_KEY" not in json.loads((tmp_path / "environ.json").read_text())
    assert any("VLLM_API_KEY is not passed on" in line for line in lines)


def test_a_server_that_wants_a_key_nobody_named_is_alive_not_down(stand_in: Make, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"alive but asks for an API key \(HTTP 401\).*server.api_key_env"):
        serve(stand_in("keyed"), log_path=tmp_path / "a.log", progress=quiet)


def test_a_proxy_in_the_environment_does_not_catch_this_machine(
    stand_in: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serve(stand_in(), log_path=tmp_path / "a.log", progress=quiet) as server:
        server.check()
    assert "127.0.0.1" in json.loads((tmp_path / "environ.json").read_text())["NO_PROXY"]


def test_another_model_on_the_port_is_refused_with_the_ids_found(stand_in: Make, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="does not serve 'fake' but another"):
        serve(stand_in("other"), log_path=tmp_path / "a.log", progress=quiet)


def test_an_engine_that_dies_before_its_first_token_is_noticed_behind_a_live_port(
    stand_in: Make, tmp_path: Path
) -> None:
    with pytest.raises(ServerError, match="engine died: /health was 200 and is now HTTP 503"):
        serve(stand_in("sick"), log_path=tmp_path / "a.log", progress=quiet)


def test_a_cell_that_is_run_again_replaces_its_server_or_finds_it(
    stand_in: Make, tmp_path: Path, gone: Callable[[int], bool], left: Callable[[], set[Server]]
) -> None:
    params = stand_in()
    first = serve(params, log_path=tmp_path / "a.log", progress=quiet)
    assert serve(params, progress=quiet, reuse=True) is first
    second = serve(params, log_path=tmp_path / "b.log", progress=quiet)
    try:
        assert not first.alive and first.pid and gone(first.pid)
        assert second.alive
    finally:
        second.stop()
    assert not left()


def test_an_edited_cell_frees_the_port_that_its_earlier_run_holds(stand_in: Make, tmp_path: Path) -> None:
    port = ports.choose("auto")
    first = serve(stand_in(port=port), log_path=tmp_path / "a.log", progress=quiet)
    second = serve(stand_in(port=port, caching=False), log_path=tmp_path / "b.log", progress=quiet)
    second.stop()
    assert not first.alive


def test_servers_in_a_with_block_are_left_alone(stand_in: Make, tmp_path: Path) -> None:
    params = stand_in()
    with (
        serve(params, log_path=tmp_path / "a.log", progress=quiet) as first,
        serve(params, log_path=tmp_path / "b.log", progress=quiet) as second,
    ):
        assert first.alive and second.alive and first.port != second.port


def test_an_exception_in_the_block_ends_the_server(stand_in: Make, tmp_path: Path, gone: Callable[[int], bool]) -> None:
    with pytest.raises(KeyboardInterrupt), serve(stand_in(), log_path=tmp_path / "a.log", progress=quiet) as server:
        raise KeyboardInterrupt
    assert server.pid and gone(server.pid)


def test_ctrl_c_while_waiting_ends_the_server(
    stand_in: Make,
    tmp_path: Path,
    gone: Callable[[int], bool],
    left: Callable[[], set[Server]],
    read_pid: Callable[[str], int],
) -> None:
    def interrupt(line: str) -> None:
        if "not open yet" in line:
            read_pid("main")
            raise KeyboardInterrupt

    go = str(tmp_path / "never")
    with pytest.raises(KeyboardInterrupt):
        serve(stand_in("silent", env={"STAND_IN_GO": go}), log_path=tmp_path / "a.log", progress=interrupt)
    assert not left()
    assert gone(read_pid("main"))


def test_serving_works_inside_a_running_event_loop(stand_in: Make, tmp_path: Path) -> None:
    async def cell() -> bool | None:
        with serve(stand_in(), log_path=tmp_path / "a.log", progress=quiet) as server:
            return server.effective.enable_prefix_caching

    assert asyncio.run(cell()) is True


def test_two_starts_never_overlap(stand_in: Make, tmp_path: Path) -> None:
    events: list[str] = []
    servers: list[Server] = []

    def start(name: str) -> None:
        def progress(line: str) -> None:
            if line.startswith(("starting", "ready")):
                events.append(f"{line.split()[0]} {name}")

        servers.append(serve(stand_in(), log_path=tmp_path / f"{name}.log", progress=progress).__enter__())

    threads = [threading.Thread(target=start, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.stop()
    first, second = events[0][-1], events[2][-1]
    assert events == [f"starting {first}", f"ready {first}", f"starting {second}", f"ready {second}"]


def test_the_html_form_is_escaped(stand_in: Make, tmp_path: Path) -> None:
    with serve(stand_in(), log_path=tmp_path / "<b>.log", progress=quiet) as server:
        text = server._repr_html_()
        assert "&lt;b&gt;.log" in text and "<b>" not in text and text.startswith("<table>")


def test_missing_programs_and_weights_are_named_before_anything_starts(stand_in: Make, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="no-such-vllm is not on PATH"):
        serve(stand_in(command=["no-such-vllm", "serve"]), progress=quiet)
    with pytest.raises(ServerError, match="does not exist"):
        serve(stand_in(command=["./no/such/python"]), progress=quiet)
    params = stand_in()
    away = params.model_copy(update={"model": params.model.model_copy(update={"path": str(tmp_path / "no model")})})
    with pytest.raises(ServerError, match="no model does not exist"):
        serve(away, progress=quiet)


def attach_params(url: str, **server: object) -> Params:
    return load_params(model={"name": "fake"}, server={"launcher": "url", "url": url, **server})


def test_attaching_starts_and_stops_nothing_and_sums_a_fleet() -> None:
    with FakeVllm(Settings()) as one, FakeVllm(Settings()) as two:
        params = attach_params(one.root_url, metrics_urls=[one.metrics_url, two.metrics_url])
        with serve(params, progress=quiet) as server:
            assert server.pid is None and server.log_path is None and server.url == one.url
            assert server.metrics_urls == (one.metrics_url, two.metrics_url)
            assert (server.effective.engines, server.effective.kv_capacity_tokens) == (2, 2 * 4000 * 16)
        serve(params, progress=quiet).check()


def test_attaching_to_the_wrong_arm_is_refused() -> None:
    with FakeVllm(Settings(caching=True)) as fake:
        params = attach_params(fake.url).model_copy(update={"enable_prefix_caching": False})
        with pytest.raises(ServerError, match="prefix caching is on in the server"):
            serve(params, progress=quiet)


def test_attaching_to_nothing_fails_at_once() -> None:
    with pytest.raises(ServerError, match="nothing answers at"):
        serve(attach_params(f"http://127.0.0.1:{ports.choose('auto')}"), progress=quiet)


def test_attaching_with_a_wrong_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVER_KEY", "wrong")
    with FakeVllm(Settings(api_key="right")) as fake:
        with pytest.raises(ServerError, match="refuses the key from MY_SERVER_KEY"):
            serve(attach_params(fake.url, api_key_env="MY_SERVER_KEY"), progress=quiet)
        with pytest.raises(ServerError, match="asks for an API key"):
            serve(attach_params(fake.url), progress=quiet)
