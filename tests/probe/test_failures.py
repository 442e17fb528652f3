"""Requests that fail: the kind, the server's words and the remedy, over a real socket."""

import threading

import pytest

from prefixkit.probe import Client
from prefixkit.probe.client import retry_after
from tests.fakes.wire import CUT, GOOD, WireServer, answer, delta, stream
from tests.probe.conftest import QUESTION

MODELS = answer(200, {"object": "list", "data": [{"id": "qwen2.5-7b"}, {"id": "other"}]})


def failed(*scripts, key=None, by_path=None, **options):
    with WireServer(*scripts, by_path=by_path) as server, Client(server.url, "m", key, **options) as client:
        probe = client.probe(QUESTION)
        assert server.requests[0].path == "/v1/chat/completions"
    assert probe.error is not None and probe.ttft_ms is None
    return probe.error["kind"], probe.error["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "code": 404},
        {"error": {"message": "No access", "code": "model_not_found"}},
        {"error": {"message": "The model `m` does not exist.", "type": "NotFoundError", "param": "model", "code": 404}},
    ],
)
def test_a_404_for_the_model_lists_the_ids_that_exist(body):
    kind, message = failed(answer(404, body), by_path={"/v1/models": MODELS})
    assert kind == "http_404_model"
    assert "/v1/chat/completions" in message and "'m'" in message and "qwen2.5-7b, other" in message


@pytest.mark.parametrize(
    ("body", "content_type"),
    [({"detail": "Not Found"}, "application/json"), (b"<html>nope", "text/html"), (b"", "x/y")],
)
def test_a_404_for_the_path_names_the_url_tried(body, content_type):
    kind, message = failed(answer(404, body, content_type))
    assert kind == "http_404_path"
    assert "http://127.0.0.1" in message and "/v1/chat/completions" in message and "base URL" in message


def test_a_404_for_the_path_where_models_are_listed_says_what_the_server_lacks():
    kind, message = failed(answer(404, {"detail": "Not Found"}), by_path={"/v1/models": MODELS})
    assert kind == "http_404_path" and "lacks chat completions" in message


def test_a_401_with_a_key_names_the_key_page_and_never_the_key():
    body = {"error": {"message": "Incorrect API key provided: sk-secret.", "code": "invalid_api_key"}}
    kind, message = failed(answer(401, body), key="sk-secret", key_page="https://keys.example")
    assert kind == "http_401"
    assert "https://keys.example" in message and "shown once" in message and "cut short" in message
    assert "sk-secret" not in message


def test_a_401_without_a_key_says_that_none_was_sent():
    kind, message = failed(answer(401, {"error": "Unauthorized"}))
    assert kind == "http_401" and "no key was sent" in message and "--api-key" in message


def test_a_service_that_wants_oauth_is_named_as_such():
    said = "API keys are not supported by this API. Expected OAuth2 access token or other credentials."
    kind, message = failed(answer(401, {"error": {"message": said, "status": "UNAUTHENTICATED"}}), key="sk-other")
    assert kind == "oauth_required" and "access token" in message and "base URL, key and model" in message


@pytest.mark.parametrize("status", [200, 403, 502])
def test_a_web_page_is_refused_by_name(status):
    kind, message = failed(answer(status, b"<!DOCTYPE html><title>Welcome</title>", "text/html"))
    assert kind == "html_answer" and "web page" in message and "/v1" in message


def test_a_200_that_is_neither_stream_nor_json_is_shown():
    kind, message = failed(answer(200, b"pong", "text/plain"))
    assert kind == "bad_response" and "pong" in message


@pytest.mark.parametrize("status", [400, 413, 422, 500, 503, 307])
def test_other_statuses_keep_their_number_and_the_servers_words(status):
    kind, message = failed(answer(status, {"object": "error", "message": "context too long", "code": status}))
    assert kind == f"http_{status}" and (status == 307 or "context too long" in message)


def test_a_throttled_request_is_sent_again_and_timed_from_the_last_attempt():
    throttle = answer(429, {"error": {"message": "slow down"}}, "application/json", "Retry-After: 0")
    with WireServer(throttle, throttle, GOOD) as server, Client(server.url, "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error is None and probe.attempt == 3 and len(server.requests) == 3
    assert probe.warnings[0].startswith("throttled: 2 earlier attempts answered 429")


def test_a_request_that_stays_throttled_is_a_failure_with_its_attempts_counted():
    throttle = answer(429, {"error": {"message": "slow down"}}, "application/json", "Retry-After: 0")
    with WireServer(throttle) as server, Client(server.url, "m", max_attempts=2) as client:
        probe = client.probe(QUESTION)
    assert probe.error["kind"] == "http_429" and probe.attempt == 2 and len(server.requests) == 2


def test_a_wait_that_is_too_long_is_not_begun():
    throttle = answer(429, {}, "application/json", "Retry-After: 86400")
    with WireServer(throttle) as server, Client(server.url, "m") as client:
        assert client.probe(QUESTION).error["kind"] == "http_429"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, 1.0), ("2", 2.0), ("0.5", 0.5), ("-3", 0.0), ("soon", 1.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after(value) == seconds


def test_nothing_listening_is_connection_refused():
    with WireServer(GOOD) as server:
        url = server.url
    with Client(url, "m") as client:
        probe = client.probe(QUESTION)
    assert probe.error["kind"] == "connection_refused" and url in probe.error["message"]
    assert "loading weights" in probe.error["message"]


def test_a_connection_closed_without_an_answer_is_named():
    kind, message = failed([CUT])
    assert kind == "disconnected" and "see its log" in message


@pytest.mark.parametrize(
    ("script", "state"), [([], "nothing came back"), (stream(delta(content="x"))[:-1], "1 deltas had arrived")]
)
def test_no_end_within_the_time_limit_is_a_timeout_that_says_how_far_it_came(script, state):
    given_up = threading.Event()
    with WireServer([*script, given_up.wait]) as server, Client(server.url, "m", timeout_s=0.2) as client:
        probe = client.probe(QUESTION)
        given_up.set()
    assert probe.error["kind"] == "timeout" and state in probe.error["message"]


def test_https_on_a_plain_port_is_a_tls_failure():
    with WireServer([b"HTTP/1.1 400 Bad Request\r\n\r\n", CUT]) as server:
        url = server.url.replace("http:", "https:")
        with Client(url, "m") as client:
            probe = client.probe(QUESTION)
    assert probe.error["kind"] == "tls"


def test_an_unknown_name_is_a_dns_failure():
    with Client("http://no-such-host.invalid/v1", "m") as client:
        assert client.probe(QUESTION).error["kind"] == "dns"
