"""What a version lacks, and how to upgrade."""

from __future__ import annotations

import pytest

from prefixkit.doctor.versions import lacks, version_check


@pytest.mark.parametrize(
    ("version", "part"),
    [
        ("0.6.4", "--no-enable-prefix-caching"),
        ("0.7.3", "gauge"),
        ("0.8.5.post1", "counters in blocks"),
        ("0.9.1", "old gpu_ name"),
        ("0.23.0", "reported as null"),
        ("0.27.1", "hybrid"),
        ("v0.11.0", "preempted"),
    ],
)
def test_each_version_lacks_what_came_later(version: str, part: str) -> None:
    assert any(part in text for text in lacks(version))
    assert "pip install -U vllm" in version_check(version).remedy


def test_a_new_version_lacks_nothing_and_an_unknown_one_says_nothing() -> None:
    assert version_check("0.33.0").status == "ok"
    assert version_check(None).status == "info"
    assert lacks("0.1.dev1+g123") == []
