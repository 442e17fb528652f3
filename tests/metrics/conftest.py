"""A server that answers with whatever a test gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.answers import Answer, answers


@pytest.fixture
def answer() -> Iterator[Answer]:
    """Serve one answer to every GET and return its URL."""
    with answers() as serve:
        yield serve
