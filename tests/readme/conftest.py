from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.readme.desk import Desk


@pytest.fixture(scope="session")
def session_desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return the desk that all documented commands share, since measuring for each would take minutes."""
    return Desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture
def desk(session_desk: Desk) -> Iterator[Desk]:
    """Return the shared desk; files that a command left beside the tracked ones are removed after it."""
    yield session_desk
    session_desk.checkout.tidy()
