"""What the documented commands share: one checkout, measured once, and fake servers for their addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm
from tests.readme.checkout import Checkout, provide, repository, shell_environment
from tests.readme.commands import Command, commands

ADDRESS = re.compile(r'https?://[^\s"]+|(?<=URL=)\.\.\.')
SECRET = "sk-planted-0123456789abcdef"


class Desk:
    """A reader's desk: an empty folder, in it a checkout, in it what the first `make report` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "elsewhere").mkdir()
        self.repository = repository(folder / "elsewhere")

    def clone(self, folder: Path) -> Path:
        """Run the command that clones, in an empty folder, with our repository's address; return the clone."""
        line = ADDRESS.sub(str(self.repository), one("git clone").text)
        return Path(Checkout(folder, shell_environment()).sh(f"{line} && pwd").splitlines()[-1])

    @cached_property
    def checkout(self) -> Checkout:
        """The checkout, set up."""
        return provide(self.clone(self.folder))

    @cached_property
    def reported(self) -> str:
        """What the first `make report` printed; no key was set."""
        return self.checkout.sh("make report")

    @cached_property
    def results(self) -> Path:
        """Where the first `make report` put its results."""
        assert self.reported
        return self.checkout.out / "cpu"

    @cached_property
    def exported(self) -> str:
        """What `make report` printed in a shell in which a gateway's variables had been exported."""
        assert self.results
        lines = [command.text for command in commands() if command.text.startswith("export ")]
        with server(gateway=True, models=("gpt-4o-mini",), api_key=SECRET) as gateway:
            typed = [ADDRESS.sub(gateway.root_url, line).replace("sk-...", SECRET) for line in lines]
            return self.checkout.sh("\n".join([*typed, "make report"]))

    @cached_property
    def published(self) -> Path:
        """The set that the documented `make publish` made of the results."""
        assert self.results
        said = self.checkout.sh(one("make publish").text)
        return Path(next(line for line in said.splitlines() if line.startswith("/")))


@contextmanager
def server(**settings: Any) -> Iterator[FakeVllm]:
    """Run a fake server in this process."""
    with FakeVllm(Settings(**settings)) as fake:
        yield fake


def at(command: Command, fake: FakeVllm) -> str:
    """Return a command's text with a fake server's address in place of the one it names."""
    text, count = ADDRESS.subn(fake.root_url, command.text)
    assert count == 1, f"{command.place}: one address was expected in {command.text}"
    return text


def one(start: str) -> Command:
    """Return the one documented command that begins so."""
    (found,) = [command for command in commands() if command.text.startswith(start)]
    return found
