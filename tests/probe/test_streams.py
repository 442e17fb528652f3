"""What real servers and gateways stream, byte by byte, and what a probe must make of it."""

import json

import pytest

from tests.fakes.wire import (
    CUT,
    DONE,
    END,
    SSE_HEAD,
    SSE_HEAD_CLOSE,
    answer,
    chunk,
    delta,
    event,
    stream,
    usage,
)

ROLE = delta(role="assistant", content="")


def kind(probe):
    return probe.error and probe.error["kind"]


def test_a_role_only_chunk_is_not_the_first_token(ask, watch):
    marks = []
    gate = watch.until(lambda r: r.role, marks)
    probe = ask(stream(ROLE, gate, delta(content="Hi"), delta("stop"), usage(), DONE))
    reading = watch.readings[-1]
    assert reading.role < marks[0] <= reading.first_token
    assert probe.error is None and probe.ttft_ms == probe.content_ms == probe.timings["first_token"]
    assert probe.timings["headers"] <= probe.timings["role"] < probe.ttft_ms <= probe.e2e_ms


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_under_both_names_is_the_first_token_and_content_is_kept_beside(ask, watch, name):
    marks = []
    gate = watch.until(lambda r: r.deltas == 2, marks)
    thought = [delta(**{name: "let"}), delta(**{name: " me"})]
    probe = ask(stream(ROLE, *thought, gate, delta(content="\n\n"), delta("stop"), usage(), DONE))
    reading = watch.readings[-1]
    assert reading.first_token < marks[0] <= reading.first_content
    assert probe.error is None and probe.ttft_ms < probe.content_ms


def test_a_thought_cut_off_by_the_token_limit_has_a_ttft_and_no_content(ask):
    probe = ask(stream(ROLE, delta(reasoning="so"), delta("length", reasoning=" far"), usage(9, 2), DONE))
    assert probe.error is None and probe.ttft_ms > 0 and probe.content_ms is None


def test_a_tool_call_is_the_first_token(ask):
    call = {"index": 0, "id": "c1", "function": {"name": "look_up", "arguments": ""}}
    probe = ask(stream(ROLE, delta(tool_calls=[call]), delta("tool_calls"), usage(), DONE))
    assert probe.error is None and probe.ttft_ms > 0 and probe.content_ms is None


def test_legacy_text_choices_count(ask):
    probe = ask(stream(event({"choices": [{"text": "a"}]}), event({"choices": [{"finish_reason": "stop"}]}), DONE))
    assert probe.error is None and probe.text == "a"


@pytest.mark.parametrize("extra", [{"choices": []}, {}, {"choices": None}])
def test_usage_is_read_from_a_last_event_with_empty_absent_or_null_choices(ask, extra):
    last = event({**extra, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    probe = ask(stream(ROLE, delta("stop", content="x"), last, DONE))
    assert probe.error is None and (probe.prompt_tokens, probe.completion_tokens) == (1, 1)


def test_filter_results_without_choice_or_delta_neither_count_nor_fail(ask, watch):
    first = event({"id": "", "choices": [], "created": 0, "model": "", "prompt_filter_results": [{"prompt_index": 0}]})
    late = {
        "index": 0,
        "finish_reason": None,
        "content_filter_results": {},
        "content_filter_offsets": {"check_offset": 44},
    }
    gate = watch.until(lambda r: r.events == 1)
    probe = ask(
        stream(
            first, gate, delta(content="x"), event({"choices": [late], "usage": None}), delta("stop"), usage(3, 1), DONE
        )
    )
    assert probe.error is None and probe.ttft_ms > probe.timings["headers"] and probe.prompt_tokens == 3
    assert watch.readings[-1].deltas == 1


def test_no_blank_after_data_crlf_no_done_and_no_last_newline(ask):
    counts = json.dumps({"prompt_tokens": 7, "completion_tokens": 1})
    body = (
        b'data:{"choices":[{"delta":{"content":"a"}}]}\r\n\r\n'
        b'data:{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":' + counts.encode() + b"}"
    )
    probe = ask([SSE_HEAD_CLOSE, body])
    assert probe.error is None and probe.text == "a"
    assert (probe.prompt_tokens, probe.completion_tokens) == (7, 1)


@pytest.mark.parametrize("tail", [[END], [CUT]])
def test_a_stream_without_finish_reason_and_without_done_is_truncated(ask, tail):
    probe = ask([SSE_HEAD, chunk(ROLE), chunk(delta(content="half")), *tail])
    assert kind(probe) == "truncated"


def test_a_connection_cut_after_the_finish_reason_is_complete(ask):
    probe = ask([SSE_HEAD, chunk(delta("stop", content="x")), chunk(usage(3, 1)), CUT])
    assert probe.error is None and probe.e2e_ms is not None


def test_comments_are_keep_alives_and_are_counted_only_before_the_first_token(ask, watch):
    marks = []
    gate = watch.until(lambda r: r.keepalives == 2, marks)
    beats = b": OPENROUTER PROCESSING\n\n"
    probe = ask(
        stream(beats, beats, gate, delta(content="x"), b": x-cache-hit=false\n\n", delta("stop"), usage(3, 1), DONE)
    )
    assert probe.error is None and watch.readings[-1].first_token >= marks[0]
    assert probe.warnings == ("the server sent 2 keep-alives before the first token",)


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "Internal error during streaming", "type": "internal_error", "code": None}},
        {"error": {"message": "Internal error during streaming", "code": 400}},
        {"object": "error", "message": "Internal error during streaming", "code": 400},
        {"error": "Internal error during streaming"},
    ],
)
@pytest.mark.parametrize("before", [[ROLE], [ROLE, delta(content="x")]])
def test_an_error_inside_a_200_stream_fails_the_request_with_the_servers_words(ask, error, before):
    probe = ask(stream(*before, event(error), DONE))
    assert kind(probe) == "error_in_stream"
    assert "Internal error during streaming" in probe.error["message"]


NO_CHOICES = {"id": None, "choices": None, "error": {"message": "User not found.", "code": 401}}


@pytest.mark.parametrize("script", [stream(event(NO_CHOICES)), answer(200, NO_CHOICES)], ids=["event", "body"])
def test_null_choices_show_the_providers_words_and_the_keys(ask, script):
    probe = ask(script)
    assert kind(probe) == "no_choices"
    message = probe.error["message"]
    assert "response without choices" in message and "User not found." in message and "id, choices, error" in message


def test_a_whole_body_in_place_of_a_stream_is_refused(ask):
    probe = ask(answer(200, {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 1}}))
    assert kind(probe) == "not_streamed" and probe.ttft_ms is None


def test_content_in_one_burst_is_called_buffered(ask, monkeypatch):
    monkeypatch.setattr("prefixkit.probe.verdict.BURST_SHARE", 1e9)
    monkeypatch.setattr("prefixkit.probe.verdict.BURST_MS_PER_DELTA", 1e9)
    probe = ask(stream(ROLE, b"".join(delta(content="x") for _ in range(60)), delta("stop"), usage(9, 60), DONE))
    assert probe.error is None
    assert [w for w in probe.warnings if "one burst" in w and "not comparable" in w]


def test_few_deltas_for_many_tokens_are_called_batched(ask):
    probe = ask(stream(ROLE, *[delta(content="many words ")] * 20, delta("stop"), usage(9, 384), DONE))
    assert [w for w in probe.warnings if w.startswith("20 deltas for 384 tokens")]


def test_characters_split_over_pieces_are_read(ask, watch):
    frame = delta("stop", content="你好")
    cut = frame.index("你".encode()) + 1
    gate = watch.until(lambda r: r.role)
    probe = ask(stream(ROLE, gate, frame[:cut], frame[cut:], usage(3, 1), DONE))
    assert probe.error is None and probe.text == "你好"


@pytest.mark.parametrize("last", [[], [usage(5, 0)], [usage(5, 3)]])
def test_a_stream_without_any_token_fails_as_no_token(ask, last):
    probe = ask(stream(ROLE, delta("stop"), *last, DONE))
    assert kind(probe) == "no_token" and probe.ttft_ms is None


def test_empty_strings_are_not_tokens(ask):
    probe = ask(stream(ROLE, delta(content=""), delta(reasoning=""), delta(tool_calls=[]), delta("stop"), DONE))
    assert kind(probe) == "no_token"


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_single_token_without_text_is_timed_by_its_chunk_with_a_warning(ask, reason):
    probe = ask(stream(ROLE, delta(reason, content=""), usage(5, 1), DONE))
    assert probe.error is None and probe.ttft_ms > 0 and probe.content_ms is None
    assert "part of a character" in probe.warnings[0]


@pytest.mark.parametrize("last", [[], [event({"choices": [], "usage": None})]], ids=["absent", "null"])
def test_missing_usage_is_unknown_and_never_zero(ask, last):
    probe = ask(stream(ROLE, delta("stop", content="x"), *last, DONE))
    assert probe.error is None
    assert probe.prompt_tokens is probe.cached_tokens is probe.completion_tokens is None
    assert [w for w in probe.warnings if w.startswith("usage missing")]


@pytest.mark.parametrize(
    ("counts", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"prompt_tokens_details": {"cached_tokens": 64}}, 64),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {}}, None),
        ({"prompt_cache_hit_tokens": 32}, 32),
        ({}, None),
    ],
)
def test_cached_tokens_are_null_when_not_reported(ask, counts, cached):
    last = event({"choices": [], "usage": {"prompt_tokens": 80, "completion_tokens": 1, **counts}})
    assert ask(stream(delta("stop", content="x"), last, DONE)).cached_tokens == cached


def test_the_servers_own_times_are_kept(ask):
    metrics = {"time_to_first_token_ms": 41.5, "queue_time_ms": 0.25, "mean_itl_ms": None, "tokens_per_second": 12.0}
    probe = ask(stream(delta("stop", content="x"), usage(3, 1, metrics=metrics), DONE))
    assert probe.server == {"queue_ms": 0.25, "ttft_ms": 41.5}


def test_an_event_that_is_not_json_is_left_out_with_a_warning(ask):
    probe = ask(stream(ROLE, b"data: {broken\n\n", delta("stop", content="x"), usage(3, 1), DONE))
    assert probe.error is None and [w for w in probe.warnings if "not JSON" in w]


def test_a_stream_with_the_wrong_content_type_is_still_read(ask):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    probe = ask([head, ROLE + delta("stop", content="x") + usage(3, 1) + DONE])
    assert probe.error is None and probe.text == "x"
