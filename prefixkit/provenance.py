"""Where a run was made: commit, machine, packages; "unknown" rather than failing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import psutil

from prefixkit import paths

UNKNOWN = "unknown"
NONE = "none"
COMMIT_VARIABLE = "PREFIXKIT_COMMIT"  # says which commit a copy without git is
PACKAGES = (
    "httpx",
    "jupyterlab",
    "matplotlib",
    "nbconvert",
    "numpy",
    "openai",
    "papermill",
    "scipy",
    "seaborn",
    "statsmodels",
)
GPU_FIELDS = (
    "name",
    "driver_version",
    "memory.total",
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "power.draw",
    "power.limit",
    "temperature.gpu",
    "persistence_mode",
)


def provenance(root: Path = paths.ROOT) -> dict[str, Any]:
    """Return commit, machine and packages, as a `run` record holds them."""
    gpus = gpu_details()
    return {
        "root": str(root),
        "git": git(root),
        "prefixkit": own_version(root),
        "cpu": cpu(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": gpu_name(gpus),
        "driver": gpus[0]["driver_version"] if gpus else NONE,
        "gpu_details": gpus,
        "os": operating_system(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "packages": {name: package_version(name) for name in PACKAGES},
    }


def git(root: Path = paths.ROOT) -> dict[str, Any]:
    """Return the commit and whether anything differs from it (None where git cannot say)."""
    commit = _output("git", "-C", str(root), "rev-parse", "HEAD")
    status = _output("git", "-C", str(root), "status", "--porcelain")
    if not commit:
        return {"commit": os.environ.get(COMMIT_VARIABLE) or UNKNOWN, "dirty": None}
    return {"commit": commit, "dirty": None if status is None else bool(status)}


def changed_files(root: Path = paths.ROOT) -> list[str]:
    """Return the files that differ from the commit, or are not in it."""
    listed = _output("git", "-C", str(root), "status", "--porcelain") or ""
    return [line.split(maxsplit=1)[1] for line in listed.splitlines()]  # the first line may have lost its indent


def cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name and how many of its cores this process may use."""
    name = platform.processor() or platform.machine() or UNKNOWN
    try:
        for line in cpuinfo.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {count or UNKNOWN} cores"


def gpu_details(command: str = "nvidia-smi") -> list[dict[str, str]]:
    """Return name, driver, clocks and power of each NVIDIA GPU; empty where there is none."""
    text = _output(command, f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    rows = [[cell.strip() for cell in line.split(",")] for line in (text or "").splitlines()]
    return [dict(zip(GPU_FIELDS, row, strict=True)) for row in rows if len(row) == len(GPU_FIELDS)]


def gpu_name(gpus: list[dict[str, str]]) -> str:
    """Return what the GPUs are called, with their number where there are several."""
    names = [gpu["name"] for gpu in gpus]
    return ", ".join(f"{names.count(n)} × {n}" if names.count(n) > 1 else n for n in dict.fromkeys(names)) or NONE


def operating_system() -> str:
    """Return the distribution and the kernel."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system() or UNKNOWN
    return f"{name}, {platform.system()} {platform.release()} {platform.machine()}"


def own_version(root: Path = paths.ROOT) -> str:
    """Return prefixkit's version, from its checkout where it is used without being installed."""
    version = package_version("prefixkit")
    project = root / "pyproject.toml"
    if version == UNKNOWN and project.is_file():
        return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"])
    return version


def package_version(name: str) -> str:
    """Return an installed package's version."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def _output(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
