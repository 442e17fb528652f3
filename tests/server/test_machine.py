"""Ports, the start lock and GPU memory."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from prefixkit.errors import ServerError
from prefixkit.server import failure, gpu, ports
from prefixkit.server.lock import start_lock


def test_auto_chooses_a_free_port() -> None:
    assert ports.is_free(ports.choose("auto"))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port_names_its_holder(host: str) -> None:
    with socket.socket() as other:
        other.bind((host, 0))
        other.listen()
        port = other.getsockname()[1]
        assert not ports.is_free(port) and ports.holders(port) == {os.getpid()}
        with pytest.raises(ServerError, match=rf"port {port} is taken by pid {os.getpid()} \(.*server.port: auto"):
            ports.choose(port)
    assert ports.choose(port) == port


def test_the_start_lock_admits_one_at_a_time_and_is_given_back() -> None:
    lines: list[str] = []
    again = start_lock(0.3, lines.append)
    with start_lock(5, lines.append), pytest.raises(ServerError, match="another server was starting"), again:
        pass
    assert lines == ["waiting: another server is starting or stopping on this machine"]
    with start_lock(5, lines.append):
        pass


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in nvidia-smi on PATH that prints two files."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase "$1" in *gpu=*) cat "{tmp_path}/gpus";; *) cat "{tmp_path}/apps";; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "gpus").write_text("0, 30000\n1, 10\n")
    (tmp_path / "apps").write_text(f"{os.getpid()}, 29000, VLLM::EngineCore\n7, [N/A], x\n")
    return tmp_path


@pytest.mark.usefixtures("nvidia_smi")
def test_gpu_memory_and_its_holders_are_read() -> None:
    assert gpu.used_mib() == {"0": 30000, "1": 10}
    assert [str(h) for h in gpu.holders()] == [f"pid {os.getpid()} (VLLM::EngineCore, 28.3 GiB)"]


def test_a_start_waits_while_memory_is_still_falling(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = [{"0": 30000}, {"0": 20000}, {"0": 500}, {"0": 500}]
    monkeypatch.setattr(gpu, "used_mib", lambda: readings.pop(0))
    monkeypatch.setattr(gpu.time, "sleep", lambda _: None)
    gpu.wait_settled()
    assert readings == []


@pytest.mark.usefixtures("nvidia_smi")
def test_memory_that_does_not_come_back_is_said_with_its_holders() -> None:
    assert gpu.wait_released({"0": 29900, "1": 0}) == ""
    held = gpu.wait_released({"0": 100, "1": 0}, timeout_s=0)
    assert "GPU 0 holds 29.2 GiB more" in held and f"pid {os.getpid()}" in held


def test_without_a_gpu_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu.used_mib() == {} and gpu.holders() == [] and gpu.wait_released({}) == ""


@pytest.mark.usefixtures("nvidia_smi")
def test_a_full_gpu_is_blamed_on_whoever_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure._machine("gpu").startswith(f"GPU memory is held by pid {os.getpid()}")
    monkeypatch.setattr(failure, "is_ours", lambda _: True)
    assert failure._machine("gpu").startswith("an earlier server of prefixkit still holds memory, stop it first")
    assert failure._machine("port") == ""
