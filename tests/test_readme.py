"""What README.md says is so."""

from __future__ import annotations

import re
import subprocess
import tomllib

import yaml
from packaging.specifiers import SpecifierSet

from prefixkit import paths
from prefixkit.params.document import table

README = (paths.ROOT / "README.md").read_text("utf-8")
MAKEFILE = (paths.ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_table_of_parameters_is_the_schema_s() -> None:
    between = README.partition("document` -->")[2].partition("<!-- end of parameters -->")[0]
    assert between.strip() == table()


def test_every_file_that_is_named_exists() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (paths.ROOT / link).exists()] == []


def test_every_link_within_the_page_has_its_heading() -> None:
    headings = {
        re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", README, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= headings


def test_every_message_of_the_troubleshooting_table_is_one_that_the_code_has() -> None:
    rows = README.partition("## Troubleshooting")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE)
    source = "\n".join(path.read_text("utf-8") for path in (paths.ROOT / "prefixkit").rglob("*.py"))
    fixed = [re.split(r" 3\.x|=False", message)[0] for message in messages]  # what follows is filled in
    assert len(fixed) > 5
    assert [text for text in fixed if text not in source] == []


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines() if line.startswith("  make ")} == TARGETS


def test_the_citation_is_of_this_version_and_licence() -> None:
    citation = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text("utf-8"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert f"Licence: {PROJECT['license']}" in README


def test_the_workflow_uses_a_python_that_the_project_supports() -> None:
    jobs = yaml.safe_load((paths.ROOT / ".github/workflows/check.yml").read_text("utf-8"))["jobs"]
    versions = [
        step["with"]["python-version"] for job in jobs.values() for step in job["steps"] if "python" in str(step)
    ]
    assert versions and all(SpecifierSet(PROJECT["requires-python"]).contains(version) for version in versions)
