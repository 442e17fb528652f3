"""Shared fixtures: real vLLM servers, started once for the whole run, and a clean environment."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from prefixkit import paths
from prefixkit.params import Params, load_arm

KEY_VARIABLES = ("TAOTOKEN_API_KEY", "TAOTOKEN_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "VLLM_API_KEY")


def pytest_configure() -> None:
    """Hear Ctrl-C again: a run in the background or under nohup ignores it, and so would every process of the tests."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _no_keys_of_this_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs a key sets its own; the developer's never leaves the shell."""
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def real_params(arm: str) -> Params:
    """Return the parameters of the embedded model's server; fail, not skip, when it was never set up."""
    params = load_arm("cpu", arm)
    program = paths.ROOT / params.server.command[0]
    assert program.exists(), f"{program} is missing: run `make setup` first"
    return params


@pytest.fixture(scope="session")
def real_on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A running vLLM server with the cache on."""
    from prefixkit import serve

    log: Path = tmp_path_factory.mktemp("real") / "on.log"
    with serve(real_params("on"), log_path=log) as server:
        yield server
