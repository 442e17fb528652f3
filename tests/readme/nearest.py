"""The nearest checks to documented commands that cannot be run here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys

import yaml

from prefixkit import bootstrap, load_params, paths
from prefixkit.params import load_arm
from prefixkit.server import command as local
from prefixkit.server import docker as container
from tests.readme.commands import Command, commands
from tests.readme.desk import Desk

FAKE_VLLM = f'exec "{sys.executable}" -m tests.fakes.vllm "$@"'


def _plan(desk: Desk, command: Command) -> str:
    """Return what `make` would do."""
    return desk.checkout.sh(command.text.replace("make ", "make -n ", 1))


def gpu_report(desk: Desk, command: Command) -> None:
    """What make would run names the profile, whose command lines differ in the cache alone."""
    profile = command.text.partition("PROFILE=")[2]
    assert f"prefixkit report --profile {profile} " in _plan(desk, command)
    path = desk.checkout.on_path("vllm", FAKE_VLLM)["PATH"]
    made = []
    for arm in ("on", "off"):
        params = load_arm(profile, arm)
        env, _ = local.environment(params, None)
        made.append(local.local(params, 8000, env | {"PATH": path}, desk.folder / f"{profile}.yaml").argv)
    on, off = made
    assert on[1:3] == ("serve", "Qwen/Qwen2.5-7B-Instruct")
    assert set(on) ^ set(off) == {"--enable-prefix-caching", "--no-enable-prefix-caching"}
    words = " ".join(on)
    if "--config" in on:
        words += (desk.folder / f"{profile}.yaml").read_text("utf-8")
    for setting in (r"gpu-memory-utilization[: ']+0\.85", r"max-model-len[: ']+4096"):
        assert re.search(setting, words)


def gpu_setup(desk: Desk, command: Command) -> None:
    """With a `vllm` on PATH it is run, and nothing is installed; without one make would install the pinned one."""
    assert "vllm-gpu" in _plan(desk, command)
    desk.checkout.sh(command.text, env=desk.checkout.on_path("vllm", FAKE_VLLM))
    assert not (desk.checkout.root / ".venv-vllm-gpu").exists()
    pins = (paths.ROOT / "requirements-conda.lock").read_text("utf-8")
    assert re.search(r"^vllm==\d", pins, re.MULTILINE)


def interleave(desk: Desk, command: Command) -> None:
    """On the default profile, whose arms are measured, it finds nothing left; the turns have tests of their own."""
    line = command.text.replace("--profile gpu", "--profile cpu")
    before = {path: path.read_bytes() for path in desk.results.glob("*.jsonl")}
    assert line != command.text and "visit" not in desk.checkout.sh(line)
    assert {path: path.read_bytes() for path in desk.results.glob("*.jsonl")} == before


def docker(desk: Desk, command: Command) -> None:
    """The command line names the image and mounts the model."""
    given = yaml.safe_load(command.text)
    params = load_params("on", model={"name": "m", "path": "/MODEL"}, **given)
    env = os.environ | desk.checkout.on_path("docker", "false")
    argv = list(container.command(params, 8000, env, with_key=False).argv)
    wanted = given["server"]["docker"]
    (volume,) = wanted["volumes"].items()
    assert argv[1] == "run" and wanted["image"] in argv and ":".join(volume) in argv
    assert argv[argv.index("--model") + 1] == "/MODEL" and "--enable-prefix-caching" in argv


def powershell(desk: Desk, command: Command) -> None:
    """It sets the variable and the value that its neighbour for sh does."""
    name, value = re.fullmatch(r'\$env:(\w+) = ("[^"$`]*")', command.text).groups()  # type: ignore[union-attr]
    assert f"export {name}={value}" in [c.text for c in commands()]
    if shutil.which("pwsh"):
        shown = desk.checkout.sh(f"pwsh -NoProfile -Command {shlex.quote(f'{command.text}; $env:{name}')}")
        assert shown.strip() == value.strip('"')


def conda(desk: Desk, command: Command) -> None:
    """Its file and name are those of environment.yml, which gives the same line; pip takes the project as it stands."""
    text = (paths.ROOT / "environment.yml").read_text("utf-8")
    create, activate, install = command.text.split(" && ")
    assert command.text in text
    assert create.split()[-1] == "environment.yml"
    assert activate.split()[-1] == yaml.safe_load(text)["name"]
    offline = install.replace("pip install", "pip install --dry-run --no-build-isolation")
    assert "Would install prefixkit" in desk.checkout.sh(f".venv/bin/python -m {offline}")


def system_package(_: Desk, command: Command) -> None:
    """The program itself gives the same remedy for the message beside it."""
    source = (paths.ROOT / bootstrap.__file__).read_text("utf-8")
    assert f'"{command.text}"' in source


def browser(desk: Desk, command: Command) -> None:
    """Its plan installs Chromium and chooses the tests that are marked for it."""
    plan = _plan(desk, command)
    assert "install -y -qq chromium" in plan and "pytest -m browser" in plan
    files = (paths.ROOT / "tests" / "browser").glob("test_*.py")
    assert any("pytest.mark.browser" in file.read_text("utf-8") for file in files)


def bench(desk: Desk, command: Command) -> None:
    """The program that it runs is there and takes its options."""
    program = next(line for line in _plan(desk, command).splitlines() if "tests.bench" in line)
    assert "--quick" in desk.checkout.sh(f"{program} --help")


def lock(desk: Desk, command: Command) -> None:
    """It would write the locks that are committed, from files that are there, with a `uv` that takes its options."""
    lines = [line for line in _plan(desk, command).splitlines() if "uv pip compile" in line]
    written = {re.search(r"-o (\S+)", line)[1] for line in lines}  # type: ignore[index]
    assert written == {path.name for path in paths.ROOT.glob("*.lock")}
    known = desk.checkout.sh(".venv/bin/uv pip compile --help")
    for line in lines:
        words = shlex.split(line)
        assert [w for w in words if w.startswith("--") and w not in known] == []
        sources = [w for w in words if w.endswith((".toml", ".in"))]
        assert sources and all((paths.ROOT / source).is_file() for source in sources)
