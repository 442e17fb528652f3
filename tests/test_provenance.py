from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from prefixkit import provenance


def repository(root: Path) -> Path:
    for command in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return root


def test_a_clean_repository_then_a_dirty_one(tmp_path: Path) -> None:
    root = repository(tmp_path)
    clean = provenance.git(root)
    (root / "new.txt").write_text("x")
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    assert provenance.git(root) == {"commit": clean["commit"], "dirty": True}


def test_outside_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.git(tmp_path) == {"commit": "unknown", "dirty": None}


def test_without_git_on_the_path_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = provenance.provenance(tmp_path)
    assert found["git"] == {"commit": "unknown", "dirty": None}
    assert (found["gpu"], found["driver"], found["gpu_details"]) == ("none", "none", [])


def test_gpus_are_read_from_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi = tmp_path / "nvidia-smi"
    row = "Card 9, 570.1, 24576 MiB, 210 MHz, 1980 MHz, 405 MHz, 31.50 W, 350.00 W, 41, Enabled"
    smi.write_text(f"#!/bin/sh\necho '{row}'\necho '{row}'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = provenance.provenance(tmp_path)
    assert (found["gpu"], found["driver"]) == ("2 × Card 9", "570.1")
    assert found["gpu_details"][0]["clocks.max.sm"] == "1980 MHz"


def test_an_nvidia_smi_that_fails_counts_as_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert provenance.gpu_details() == []


def test_an_unreadable_cpuinfo_still_names_the_cores(tmp_path: Path) -> None:
    assert provenance.cpu(tmp_path / "none").endswith("cores")


def test_everything_fits_into_a_json_record() -> None:
    found = json.loads(json.dumps(provenance.provenance()))
    assert {"git", "prefixkit", "cpu", "gpu", "driver", "os", "python", "executable", "packages"} <= found.keys()
    assert found["packages"]["statsmodels"] != "unknown"


def test_a_checkout_that_is_not_installed_knows_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "package_version", lambda _: "unknown")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    assert provenance.own_version(tmp_path) == "1.2.3"
    assert provenance.own_version(tmp_path / "elsewhere") == "unknown"


def test_a_package_that_is_not_installed_is_unknown() -> None:
    assert provenance.package_version("no-such-package-here") == "unknown"


def test_changed_files_are_named_whole(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    (tmp_path / "known.txt").write_text("1")
    git("add", "known.txt")
    git("commit", "-m", "one")
    (tmp_path / "known.txt").write_text("2")
    (tmp_path / "new.txt").write_text("1")
    assert provenance.changed_files(tmp_path) == ["known.txt", "new.txt"]
