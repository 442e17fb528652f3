"""The command line and environment of a local server."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from prefixkit import paths
from prefixkit.errors import ServerError
from prefixkit.params import Params, load_params
from prefixkit.server import command, versions

Make = Callable[..., Params]


@pytest.fixture(autouse=True)
def _version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "find", lambda *_: "0.25.1")


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "with blank" / "vllm"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def params(
    program: list[str], caching: bool | None = True, model: dict[str, Any] | None = None, **server: Any
) -> Params:
    return load_params(
        model={"name": "m", "path": "a/b", **(model or {})},
        enable_prefix_caching=caching,
        server={"command": program, **server},
    )


def local(given: Params, tmp_path: Path) -> tuple[str, ...]:
    env, _ = command.environment(given, None)
    return command.local(given, 9000, env, tmp_path / "c.yaml").argv


def test_the_model_is_positional_after_serve(program: str, tmp_path: Path) -> None:
    argv = local(params([program, "serve"], engine_args={"max_model_len": 4096}), tmp_path)
    assert argv == (
        program, "serve", "a/b", "--host", "127.0.0.1", "--served-model-name", "m", "--port", "9000",
        "--enable-prefix-caching", "--max-model-len", "4096",
    )  # fmt: skip


def test_the_model_is_a_flag_of_the_module_form(tmp_path: Path) -> None:
    given = params([sys.executable, "-m", "vllm.x"], caching=False, model={"load_format": "dummy"})
    argv = local(given, tmp_path)
    assert argv[3:5] == ("--model", "a/b") and "--no-enable-prefix-caching" in argv
    assert argv[argv.index("--load-format") + 1] == "dummy"


def test_without_an_arm_the_server_decides(program: str, tmp_path: Path) -> None:
    assert not [a for a in local(params([program, "serve"], caching=None), tmp_path) if "prefix-caching" in a]


@pytest.mark.parametrize("caching", [True, False])
@pytest.mark.parametrize("form", ["serve", "module"])
def test_the_arm_is_a_flag_beside_a_config_file_that_may_drop_false(
    program: str, tmp_path: Path, caching: bool, form: str
) -> None:
    words = [program, "serve"] if form == "serve" else [program]
    engine_args = {"max_model_len": 4096, "enforce_eager": True, "enable_chunked_prefill": False}
    argv = local(params(words, caching=caching, config_file=True, engine_args=engine_args), tmp_path)
    config = tmp_path / "c.yaml"
    assert argv[argv.index("--config") + 1] == str(config)
    assert yaml.safe_load(config.read_text()) == {
        "served-model-name": "m", "port": "9000", "max-model-len": "4096", "enforce-eager": True
    }  # fmt: skip
    assert ("--enable-prefix-caching" in argv) is caching and ("--no-enable-prefix-caching" in argv) is not caching
    assert "--no-enable-chunked-prefill" in argv
    assert argv[len(words) + (form == "serve")] == "--host=127.0.0.1"


def test_paths_with_a_slash_are_relative_to_the_project_and_links_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    link = tmp_path / "env" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    given = params(["env/python", "-m", "vllm.x"])
    env, _ = command.environment(given, None)
    assert command.local(given, 9000, env, tmp_path / "c.yaml").argv[0] == str(link)
    assert env["PATH"].split(os.pathsep)[0] == str(link.parent)


def test_a_vllm_of_the_user_goes_before_the_one_that_setup_made(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path / "project")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    given = params(["vllm", "serve"])
    with pytest.raises(ServerError, match=r"vllm is not on PATH.*make setup PROFILE=gpu"):
        local(given, tmp_path)
    made = tmp_path / "project" / ".venv-vllm-gpu" / "bin" / "vllm"
    made.parent.mkdir(parents=True)
    made.symlink_to(program)
    assert local(given, tmp_path)[0] == str(made)
    monkeypatch.setenv("PATH", str(Path(program).parent))
    assert local(given, tmp_path)[0] == program


def test_a_model_folder_with_blanks_stays_one_word(program: str, tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    assert str(folder) in local(params([program, "serve"], model={"path": str(folder)}), tmp_path)


def test_the_environment_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "k1")
    monkeypatch.setenv("no_proxy", "example.org")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    env, notes = command.environment(params(["x"], env={"A": "b c"}), None)
    assert "VLLM_API_KEY" not in env and "VLLM_API_KEY is not passed on" in notes[0] and "k1" not in notes[0]
    assert env["no_proxy"] == "example.org,127.0.0.1,localhost" and env["A"] == "b c" and "MPLBACKEND" not in env
    env, notes = command.environment(params(["x"]), "k2")
    assert env["VLLM_API_KEY"] == "k2" and notes == ()


@pytest.mark.parametrize("name", ["VLLM_API_KEY", "HF_TOKEN", "MY_SECRET"])
def test_a_secret_in_the_parameters_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ServerError, match=f"server.env.{name}") as caught:
        command.environment(params(["x"], env={name: "sk-hidden"}), None)
    assert "sk-hidden" not in str(caught.value)


def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.api_key(params(["x"])) is None
    given = params(["x"], api_key_env="MY_KEY")
    with pytest.raises(ServerError, match="MY_KEY, which is not set"):
        command.api_key(given)
    monkeypatch.setenv("MY_KEY", " sk-x\n")
    assert command.api_key(given) == "sk-x"
    monkeypatch.setenv("MY_KEY", "  ")
    with pytest.raises(ServerError, match="the key from MY_KEY is empty") as caught:
        command.api_key(given)
    assert caught.value.exit_code == 2
