"""What a notebook shows of our objects: a table for the browser, text for what is saved; markup in it stays text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from prefixkit import Fit, HitRate, Probe, fit, load_params
from prefixkit.doctor.check import Check, Diagnosis
from prefixkit.server import Server

MARKUP = "</td><img src=x onerror=alert(1)><script>alert('&')</script>"
TABLE = {"table", "thead", "tbody", "tr", "th", "td", "p", "ul", "li"}


def planted_fit() -> Fit:
    """Return the fit of records whose arm, experiment and error come from somewhere else."""
    base = {"record": "probe", "schema": 1, "experiment": "length", "phase": "warm", "error": None}
    good = [{**base, "arm": "on", "prompt_tokens": n, "ttft_ms": n / 10} for n in (100, 200, 300)]
    return fit([*good, {**good[0], "schema": MARKUP}, {**good[0], "ttft_ms": MARKUP}, {**good[0], "arm": MARKUP}])


def planted_server() -> Server:
    """Return a server object with markup wherever its parameters allow it; nothing is started."""
    params = load_params("cpu", "on")
    url = f"http://127.0.0.1:1/{MARKUP}"
    return Server(url, url, (url,), MARKUP, params, argv=("vllm", MARKUP), notes=(MARKUP,), api_key="sk-planted-0123")


OBJECTS = {
    "Server": planted_server,
    "Probe": lambda: Probe(ttft_ms=1.0, text=MARKUP, warnings=(MARKUP,), server={MARKUP: 1.0}),
    "failed Probe": lambda: Probe(error={"kind": MARKUP, "message": MARKUP}),
    "HitRate": lambda: HitRate(
        "ok", MARKUP, "tokens", 10, 5, 0.5, {MARKUP: {"queries": 10, "hits": 5, "hit_rate": 0.5}}, MARKUP
    ),
    "Fit": planted_fit,
    "Diagnosis": lambda: Diagnosis([Check(MARKUP, "failed", MARKUP, MARKUP)]),
}


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_shows_itself_as_a_table_in_which_markup_stays_text(name: str) -> None:
    shown: Any = OBJECTS[name]()
    page = Tags(shown._repr_html_())
    assert "table" in page.tags
    assert page.tags <= TABLE
    assert page.attributes == set()


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_has_a_text_that_a_person_can_read_and_no_key(name: str) -> None:
    shown: Any = OBJECTS[name]()
    assert repr(shown) == str(shown)
    assert "object at 0x" not in repr(shown)
    assert "sk-planted" not in repr(shown) + shown._repr_html_()


def test_a_probe_says_what_was_measured_and_what_was_not_reported() -> None:
    text = repr(Probe(ttft_ms=1234.56, content_ms=1300.0, e2e_ms=1400.0, prompt_tokens=2048, completion_tokens=1))
    assert "first token: 1,234.6 ms" in text
    assert "prompt tokens: 2,048" in text
    assert "cached tokens: not reported" in text


def test_a_failed_probe_leads_with_its_error_and_a_text_of_many_lines_stays_on_one() -> None:
    failed = Probe(ttft_ms=5.0, error={"kind": "timeout", "message": "no answer"}, text="one\n  two")
    assert repr(failed) == "Probe(error: timeout: no answer; first token: 5.0 ms; reply: one two)"
