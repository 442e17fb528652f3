import json

from prefixkit.probe import Probe
from prefixkit.probe.calibrate import Calibration
from prefixkit.probe.survey import Survey

FAILED = Probe(attempt=3, error={"kind": "http_429", "message": "slow down"}, ttft_ms=1.0)


def good(ttft_ms, cached=None):
    return Probe(ttft_ms, ttft_ms, ttft_ms + 10, 100, cached, 2)


def test_failed_requests_are_counted_and_never_summed_up():
    summary = Survey((good(50.0, 0), FAILED, good(30.0, 64), good(20.0, 64))).summary()
    assert (summary["n"], summary["failed"], summary["throttled"]) == (4, 1, 1)
    assert (summary["ttft_first_ms"], summary["ttft_p50_ms"], summary["e2e_p50_ms"]) == (50.0, 30.0, 40.0)
    assert (summary["prompt_tokens"], summary["cached_tokens"]) == (300, 128)
    assert summary["errors"] == {"http_429": 1}


def test_a_run_in_which_every_request_failed_has_nulls_and_does_not_fail_itself():
    survey = Survey((FAILED, FAILED))
    summary = survey.summary()
    assert summary["failed"] == 2 and summary["ttft_p50_ms"] is None and summary["cached_tokens"] is None
    assert "slow down" in str(survey) and json.dumps(survey.record())


def test_unreported_cached_tokens_stay_unknown():
    assert Survey((good(50.0), good(30.0))).summary()["cached_tokens"] is None


def test_a_busy_client_says_that_it_was_the_bottleneck():
    calibration = Calibration(1000, 1, 20, 0.1, 0.2)
    calm, busy = Survey((good(50.0),), calibration, 0.3), Survey((good(50.0),), calibration, 0.95)
    assert calm.summary()["bottleneck"] is None
    assert "busy 95%" in busy.summary()["bottleneck"] and "bottleneck" in str(busy)


def test_warnings_and_overhead_are_printed():
    text = str(Survey((Probe(12.0, warnings=("usage missing",)),), Calibration(1000, 1, 20, 0.1, 0.2)))
    assert "note: usage missing" in text and "p50 0.10 ms" in text
