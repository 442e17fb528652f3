"""What README.md says is so."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
import yaml

from prefixkit import load_params, paths
from prefixkit.__main__ import COMMANDS, main
from prefixkit.params.document import table

README = (paths.ROOT / "README.md").read_text("utf-8")
MAKEFILE = (paths.ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
CODE = re.findall(r"```\w*\n(.*?)```|`([^`\n]+)`", README, re.DOTALL)
SNIPPETS = [block or inline for block, inline in CODE]


def test_the_table_of_parameters_is_the_schema_s() -> None:
    between = README.partition("document` -->")[2].partition("<!-- end of parameters -->")[0]
    assert between.strip() == table()


def test_every_make_target_that_is_named_exists() -> None:
    named = {name for text in SNIPPETS for name in re.findall(r"^make ((?:[A-Z]+=\S+ )*[a-z-]+)", text, re.MULTILINE)}
    assert {name.split()[-1] for name in named} <= TARGETS
    assert "report" in {name.split()[-1] for name in named}


def test_every_command_that_is_named_takes_the_options_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for text in SNIPPETS for line in re.findall(r"python -m prefixkit ([a-z][^\n]*)", text)]
    assert lines
    for line in lines:
        command, *arguments = shlex.split(line, comments=True)
        assert command in COMMANDS
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        for option in (a for a in arguments if a.startswith("--")):
            assert option in shown, f"{command} has no {option}"


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


@pytest.mark.parametrize("text", [t for t in SNIPPETS if re.match(r"(# params/|server: |experiments: |report: )", t)])
def test_every_parameter_example_is_valid(text: str) -> None:
    load_params(**{"model": {"name": "m"}, **yaml.safe_load(text)})


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=paths.ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines() if line.startswith("  make ")} == TARGETS


@pytest.mark.parametrize("block", [b for b in SNIPPETS if b.startswith("import prefixkit")])
def test_the_python_example_compiles_and_uses_public_names(block: str) -> None:
    import prefixkit

    compile(block, "README.md", "exec")
    for name in set(re.findall(r"prefixkit\.(\w+)", block)):
        assert hasattr(prefixkit, name)
