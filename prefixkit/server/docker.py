"""The `docker run` of a server, and whether its container is gone."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ServerError
from prefixkit.model import model_path
from prefixkit.params import Params
from prefixkit.server import flags, versions
from prefixkit.server.command import Command, prefix_caching
from prefixkit.server.flags import SettingsError


def command(params: Params, port: int, env: dict[str, str], with_key: bool) -> Command:
    """Return the command line: the container in the foreground, its port published, the model's folder mounted."""
    if params.server.config_file:
        raise SettingsError(
            "server.config_file works with launcher `local`", "set it to false, or use the local launcher"
        )
    program = shutil.which("docker", path=env.get("PATH"))
    if program is None:
        raise ServerError("docker is not on PATH", "install Docker, or use server.launcher: local")
    docker = params.server.docker
    version = versions.from_image(docker.image)
    versions.check_supported(version, "choose a newer tag in server.docker.image")
    rendered = flags.render(flags.parse(params.server.engine_args), version)
    volumes = {_host_folder(host): inside for host, inside in docker.volumes.items()}
    model = _inside(model_path(params), volumes)
    name = f"prefixkit-{port}-{secrets.token_hex(4)}"
    argv = [program, "run", "--rm", "--name", name, *docker.run_args, "-p", f"{port}:{port}"]
    for host, inside in volumes.items():
        argv += ["-v", f"{host}:{inside}"]
    for variable, value in params.server.env.items():
        argv += ["-e", f"{variable}={value}"]
    if with_key:
        argv += ["-e", "VLLM_API_KEY"]  # the name alone: docker takes the value from its own environment
    argv += [docker.image, "--model", model, "--host", "0.0.0.0", "--port", str(port)]
    argv += ["--served-model-name", params.model.name]
    if params.model.load_format != "auto":
        argv += ["--load-format", params.model.load_format]
    argv += [*prefix_caching(params), *rendered.args]
    return Command(tuple(argv), version, rendered.notes, ((program, "rm", "-f", name),))


def left_over(made: Command) -> str:
    """Return the name of the container if it still exists after the stop, or nothing."""
    program, *_, name = made.cleanup[0]
    try:
        done = subprocess.run(
            [program, "ps", "-aq", "--filter", f"name=^/?{name}$"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return name if done.stdout.strip() else ""


def _host_folder(host: str) -> str:
    path = Path(host).expanduser()
    return str(path if path.is_absolute() else paths.ROOT / path)


def _inside(model: str, volumes: dict[str, str]) -> str:
    """Return the model's path in the container, mounting its folder when no volume covers it."""
    if not Path(model).is_dir():
        return model
    path = Path(model)
    for host, inside in volumes.items():
        if path.is_relative_to(Path(host).resolve()):
            return str(Path(inside) / path.relative_to(Path(host).resolve()))
    volumes[str(path)] = f"/models/{path.name}"
    return f"/models/{path.name}"
