"""Reading pages over HTTP: what cannot be read is named with its URL, status and first bytes."""

from __future__ import annotations

import gzip
import socket

import pytest

from prefixkit.metrics import MetricsError, fetch
from tests.fakes.answers import Answer
from tests.metrics.pages import counters

PAGE = counters([(4, 1)]).encode()


def test_pages_come_back_in_order(answer: Answer) -> None:
    first, second = answer(PAGE), answer(b"other_total 1\n")
    assert fetch([first, second]) == [PAGE.decode(), "other_total 1\n"]
    assert fetch(first) == [PAGE.decode()]


def test_a_compressed_answer_is_decoded(answer: Answer) -> None:
    assert fetch(answer(gzip.compress(PAGE), headers={"content-encoding": "gzip"})) == [PAGE.decode()]


@pytest.mark.parametrize(
    ("body", "status", "headers", "named"),
    [
        (b"broken", 500, {}, ["HTTP 500", "metrics endpoint failed", "PROMETHEUS_MULTIPROC_DIR", "broken"]),
        (b'{"detail":"Not Found"}', 404, {}, ["HTTP 404", "not under /v1", "Not Found"]),
        (b"", 401, {}, ["HTTP 401", "key"]),
        (gzip.compress(PAGE), 200, {"content-type": "text/plain"}, ["gzip", "text/plain", "x1f"]),
        (b"\x1f\x8bnonsense", 200, {"content-encoding": "gzip"}, ["not the compression it claims"]),
        (b'{"mode": 1}', 200, {"content-type": "application/json"}, ["JSON", "application/json", "mode"]),
        (b"<html>Sign in</html>", 200, {"content-type": "text/html"}, ["HTML", "text/html", "Sign in"]),
        (PAGE, 200, {"content-length": "100000"}, ["cannot be read"]),
    ],
    ids=["500", "404", "401", "gzip", "false-gzip", "json", "html", "cut"],
)
def test_a_bad_answer_is_one_clear_message(
    answer: Answer, body: bytes, status: int, headers: dict[str, str], named: list[str]
) -> None:
    url = answer(body, status, headers)
    with pytest.raises(MetricsError) as caught:
        fetch(url)
    assert url in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in named:
        assert word in str(caught.value)


def test_nothing_listening_is_said() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(MetricsError, match="nothing answers"):
            fetch(f"http://127.0.0.1:{held.getsockname()[1]}/metrics")


@pytest.mark.parametrize("url", ["", "not a url", "http://", "ftp://h/metrics", "http://h:99999/metrics"])
def test_an_impossible_address_is_said(url: str) -> None:
    with pytest.raises(MetricsError):
        fetch(url, timeout_s=2)


def test_secrets_in_the_url_are_not_shown() -> None:
    with pytest.raises(MetricsError) as caught:
        fetch("http://user:hunter2@127.0.0.1:1/metrics?token=hunter2", timeout_s=2)
    assert "hunter2" not in str(caught.value)
