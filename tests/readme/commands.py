"""The commands that the documentation names: every line of its code blocks, and what stands inline as `command`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from prefixkit import paths

README = paths.ROOT / "README.md"
WORKFLOWS = paths.ROOT / ".github" / "workflows"
# What makes inline code a command: its first word, with a second one behind it.
PROGRAM = re.compile(
    r"\.venv\S*/\S+|\./\S+|apt|apt-get|bash|cd|conda|curl|docker|export|git|jupyter|kubectl|make|npm|npx|papermill|pip|"
    r"pwsh|pytest|python3?|sh|sudo|uv|vllm|wget"
)
SECTIONS = "model|server|experiments|cloud|report"


@dataclass(frozen=True, slots=True)
class Command:
    """A command or snippet as it stands in the text; `kind` is `shell`, `powershell`, or the block's language."""

    kind: str
    text: str
    place: str


def commands() -> list[Command]:
    """Return each command of README.md and of the workflows once, in their order."""
    text = README.read_text("utf-8")
    found: dict[tuple[str, str], Command] = {}
    for command in [*_of_markdown(text), *_of_workflows()]:
        found.setdefault((command.kind, command.text), command)
    return list(found.values())


def _of_markdown(text: str) -> list[Command]:
    found = []
    # A table that is printed from the schema, tested elsewhere; its words on `docker run` are no command.
    without = re.sub(r"(?s)(<!-- parameters:.*?-->).*?<!-- end of parameters -->", _same_lines, text)
    for match in re.finditer(r"```(\w*)\n(.*?)```|`([^`\n]+)`", without, re.DOTALL):
        language, block, inline = match.groups()
        line = without.count("\n", 0, match.start()) + 1
        if inline is not None:
            kinds = [(kind_of(inline), inline)]
        elif language in ("sh", "powershell"):
            lines = [re.sub(r"\s+#.*$", "", x).strip() for x in block.replace("\\\n", " ").splitlines()]
            kinds = [("shell" if language == "sh" else language, x) for x in lines if x and not x.startswith("#")]
        else:
            kinds = [(language or "unnamed", block)]
        found += [Command(kind, words, f"README.md:{line}") for kind, words in kinds if kind]
    return found


def _same_lines(match: re.Match[str]) -> str:
    return match[1] + "\n" * (match[0].count("\n") - match[1].count("\n"))


def kind_of(inline: str) -> str:
    """Return what inline code is; empty when it is a name, a value or a message."""
    first, _, rest = inline.partition(" ")
    if first.startswith("$env:"):
        return "powershell"
    if rest and PROGRAM.fullmatch(first):
        return "shell"
    if re.match(rf"({SECTIONS}): \{{", inline) or re.fullmatch(r"\{[a-z_]+: [^{}\[\],]+\}", inline):
        return "yaml"
    return ""


def _of_workflows() -> list[Command]:
    found = []
    for path in sorted(WORKFLOWS.glob("*.y*ml")):
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
            found += [Command("shell", line.strip(), path.name) for line in lines if line.strip()]
    return found
