"""Exact times: events given to a reading at moments of our choosing."""

import pytest

from prefixkit.probe.failures import Context
from prefixkit.probe.reading import Reading
from prefixkit.probe.verdict import probe_of
from tests.fakes.wire import DONE, delta, usage

CONTEXT = Context("http://h/v1/chat/completions", "m", has_key=False)
ROLE = delta(role="assistant", content="")
START_NS = 5_000_000_000


def probe(*timed, prompt=9, completion=2):
    """Return the probe of events at moments given in ms after the first byte left; the end follows at the last."""
    reading = Reading()
    reading.on_sent(START_NS, 0.25)
    reading.on_head(200, "text/event-stream", START_NS + 1_000_000, START_NS + 1_500_000)
    for moment_ms, event in (*timed, (timed[-1][0], delta("stop") + usage(prompt, completion) + DONE)):
        reading.on_body(event, START_NS + round(moment_ms * 1e6))
    reading.on_end(START_NS + round(timed[-1][0] * 1e6))
    return probe_of(reading, CONTEXT)


def tokens(first_ms, gap_ms, count):
    return [(first_ms + i * gap_ms, delta(content="x")) for i in range(count)]


def test_ttft_runs_from_the_first_byte_to_the_first_token_whatever_the_role_chunk():
    found = probe((1, ROLE), (800, delta(content="Hi")), (900, delta(content="!")))
    assert (found.ttft_ms, found.content_ms, found.e2e_ms) == (800.0, 800.0, 900.0)
    assert found.timings == {
        "connect": 0.25, "headers": 1.5, "first_byte": 1.0, "role": 1.0, "first_token": 800.0, "first_content": 800.0,
        "last_token": 900.0, "end": 900.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_comes_first_and_content_is_kept_beside(name):
    thought = delta(**{name: "so"})
    found = probe((2, ROLE), (120, thought), (140, thought), (3000, delta(content="\n\n")), completion=3)
    assert (found.ttft_ms, found.content_ms) == (120.0, 3000.0)


def test_all_content_within_a_millisecond_of_the_end_is_called_buffered():
    found = probe((0, ROLE), *tokens(1699.0, 1 / 60, 60), completion=60)
    assert [w for w in found.warnings if "one burst" in w] and found.error is None


@pytest.mark.parametrize(
    ("first_ms", "gap_ms", "count"), [(50, 1, 64), (2000, 15, 64), (50, 0.5, 200), (400, 0, 1), (9, 8, 2)]
)
def test_a_steady_stream_has_no_warning(first_ms, gap_ms, count):
    assert probe((0, ROLE), *tokens(first_ms, gap_ms, count), completion=count).warnings == ()


def test_a_parser_that_holds_tokens_back_is_called_batched():
    found = probe((3, ROLE), *tokens(5500, 45, 20), completion=384)
    assert found.ttft_ms == 5500.0 and [w for w in found.warnings if w.startswith("20 deltas for 384 tokens")]


def test_nothing_that_failed_before_it_was_sent_has_times():
    found = probe_of(Reading(), CONTEXT, error={"kind": "dns", "message": "no such name"})
    assert found.timings == {} and found.ttft_ms is found.e2e_ms is None
