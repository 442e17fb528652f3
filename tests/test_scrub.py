from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit import paths
from prefixkit.scrub import Scrubber, find_key


@pytest.fixture
def scrub(monkeypatch: pytest.MonkeyPatch) -> Scrubber:
    """A scrubber of a project in a home directory."""
    monkeypatch.setattr(paths, "ROOT", Path("/home/ann/project"))
    monkeypatch.setattr(Path, "home", lambda: Path("/home/ann"))
    return Scrubber.here({"/tmp/stage": "report/published/x"})


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/ann/project/.venv/bin/python", "./.venv/bin/python"),
        ('{"argv": ["/home/ann/project"]}', '{"argv": ["."]}'),
        ("cache in /home/ann/.cache, /home/ann.", "cache in ~/.cache, ~."),
        ("file:///home/ann/project/a", "file://./a"),
        ("/tmp/stage/on.jsonl.gz", "report/published/x/on.jsonl.gz"),
        (
            "/home/anna /mnt/home/ann/x /home/ann-2 /home/ann/project2",
            "/home/anna /mnt/home/ann/x /home/ann-2 ~/project2",
        ),
    ],
)
def test_folders_of_this_machine_become_short(scrub: Scrubber, text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_a_log_loses_its_colours_and_folders_that_follow_other_text_at_once(scrub: Scrubber) -> None:
    assert scrub.log("\x1b[0m/home/ann/project/m\x1b[1m see https://x.org/a.html/home/ann/lib/b.py") == (
        "./m see https://x.org/a.html~/lib/b.py"
    )


def test_a_home_at_the_root_of_the_file_system_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert Scrubber.here()("/usr/bin") == "/usr/bin"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("key sk-proj-0123456789abcdefghij here", "sk-..."),
        ("Authorization: Bearer abcdefghijklmnop0123", "a bearer token"),
        ("hf_abcdefghijklmnopqrstuvwx", "hf_..."),
        ("the gateway said t0ken\\u002d", None),
        ("disk-0123456789abcdefghij and sk-short", None),
        ("my secret-1 \\ key", "the value of MY_KEY"),
        ('{"header": "my secret-1 \\\\ key"}', "the value of MY_KEY"),
    ],
)
def test_keys_are_found_by_value_and_by_shape(text: str, kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret-1 \\ key")
    assert find_key(text, {"MY_KEY"}) == kind


@pytest.mark.parametrize("value", ["", "EMPTY", "ok"])
def test_a_value_that_is_no_secret_is_not_searched_for(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", value)
    assert find_key("this is ok, EMPTY or not", {"MY_KEY"}) is None
