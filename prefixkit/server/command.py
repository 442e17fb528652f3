"""The command line and environment of a local server."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from prefixkit import paths
from prefixkit.errors import ProbeError, ServerError
from prefixkit.model import model_path
from prefixkit.params import Params
from prefixkit.probe.keys import clean_key
from prefixkit.server import flags, versions
from prefixkit.server.flags import SettingsError

_SECRET = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD)$")


@dataclass(frozen=True, slots=True)
class Command:
    """What starts a server: argv, the version it is spelled for, and what was changed on the way."""

    argv: tuple[str, ...]
    version: str | None
    notes: tuple[str, ...]
    cleanup: tuple[tuple[str, ...], ...] = ()


def api_key(params: Params) -> str | None:
    """Return the key from the variable that `server.api_key_env` names."""
    name = params.server.api_key_env
    if name is None:
        return None
    if name not in os.environ:
        raise SettingsError(f"server.api_key_env names {name}, which is not set in this process", f"export {name}=...")
    try:
        return clean_key(os.environ[name], name)
    except ProbeError as error:
        raise SettingsError(error.message, error.remedy) from None


def environment(params: Params, key: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the server's environment, and notes; it asks for a key only if `server.api_key_env` says so."""
    env = dict(os.environ)
    notes: list[str] = []
    if env.pop("VLLM_API_KEY", None) is not None and key is None:
        notes.append(
            "VLLM_API_KEY is not passed on: server.api_key_env does not name it, so the server asks for no key"
        )
    if env.get("MPLBACKEND", "").startswith("module://"):
        del env["MPLBACKEND"]  # a notebook's drawing module, which the server's Python need not have
    env.setdefault("PYTHONUNBUFFERED", "1")
    for name, value in params.server.env.items():
        if _SECRET.search(name.upper()):
            raise SettingsError(
                f"server.env.{name}: a secret in a parameter file would be recorded",
                "set the variable in your shell; the server inherits it"
                + (", and name it in server.api_key_env" if name == "VLLM_API_KEY" else ""),
            )
        env[name] = value
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [host for host in env.get(name, "").split(",") if host]
        env[name] = ",".join(dict.fromkeys([*hosts, "127.0.0.1", "localhost"]))
    if key is not None:
        env["VLLM_API_KEY"] = key
    return env, tuple(notes)


def local(params: Params, port: int, env: dict[str, str], config_path: Path) -> Command:
    """Return the command line of a local server; with `server.config_file` also write its `--config` file."""
    command = list(params.server.command)
    command[0] = _program(command[0], env)
    # Tools that vLLM calls (ninja, nvcc wrappers) lie beside its Python, which need not be an activated environment.
    env["PATH"] = f"{Path(command[0]).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    version = versions.find(command, env, paths.ROOT)
    versions.check_supported(version)
    rendered = flags.render(flags.parse(params.server.engine_args), version, config_file=params.server.config_file)
    model = model_path(params)
    positional = command[-1] == "serve"
    named = {"served-model-name": params.model.name, "port": str(port)}
    if params.model.load_format != "auto":
        named["load-format"] = params.model.load_format
    argv = [*command, model] if positional else command
    if params.server.config_file:
        _write_config(config_path, {**named, **rendered.config})
        # Before 0.9 the module form tears its first word from the second: this one stands alone.
        argv += ["--host=127.0.0.1", "--config", str(config_path)]
        argv += [] if positional else ["--model", model]
    else:
        argv += [] if positional else ["--model", model]
        argv += ["--host", "127.0.0.1", *(word for name, value in named.items() for word in (f"--{name}", value))]
    # Always a flag: `--config` of several versions drops every `false`.
    argv += [*prefix_caching(params), *rendered.args]
    return Command(tuple(argv), version, rendered.notes)


def prefix_caching(params: Params) -> list[str]:
    """Return the one flag in which the arms differ."""
    if params.enable_prefix_caching is None:
        return []
    return ["--enable-prefix-caching" if params.enable_prefix_caching else "--no-enable-prefix-caching"]


def _program(name: str, env: dict[str, str]) -> str:
    if "/" in name:
        path = Path(name).expanduser()
        path = path if path.is_absolute() else paths.ROOT / path
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)  # not resolved: a virtual environment's Python is a link
        missing = f"{path} does not exist" if not path.exists() else f"{path} is not a program"
        raise ServerError(f"server.command: {missing}", "make setup, or mend server.command in the profile")
    ours = paths.ROOT / ".venv-vllm-gpu" / "bin"
    if found := shutil.which(name, path=env.get("PATH")) or shutil.which(name, path=str(ours)):
        return found
    raise ServerError(
        f"server.command: {name} is not on PATH", "pip install -U vllm (or `make setup PROFILE=gpu`), or give its path"
    )


def _write_config(path: Path, config: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True), "utf-8")
