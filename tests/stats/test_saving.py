"""Whole answers: time per output token, and the end-to-end saving."""

from __future__ import annotations

import pytest

from prefixkit.stats import end_to_end, tpot_test
from tests.stats.simulated import run, switch


def test_equal_decoding_is_equivalent() -> None:
    found = tpot_test(switch())
    assert found.test.decision == "equivalent"
    assert found.on.value == pytest.approx(18.0, abs=0.1)


def test_different_decoding_is_different() -> None:
    found = tpot_test(switch(tpot_on=25.0))
    assert found.test.decision == "different"
    assert "differed in more than the cache" in found.test.verdict.note


def test_answers_of_one_token_have_no_tpot_and_are_counted() -> None:
    found = tpot_test(run(), experiment="length")
    assert found.on.status == "empty"
    assert found.dropped == {"on: no TPOT": 75, "off: no TPOT": 25}


def test_long_answers_hide_the_saving() -> None:
    by_tokens = {e.output_tokens: e for e in end_to_end(switch())}
    assert list(by_tokens) == [1, 32, 64, 512]
    assert by_tokens[1].reduction.value == pytest.approx(280 / 345, abs=0.01)
    assert by_tokens[64].reduction.value == pytest.approx(280 / (345 + 63 * 18), abs=0.005)
    assert (by_tokens[512].reduction.value or 1) < 0.04
    for found in by_tokens.values():
        assert found.reduction.ci is not None
        assert found.saved_ms.value == pytest.approx(280, abs=5)


def test_measured_answers_stand_beside_the_prediction() -> None:
    by_tokens = {e.output_tokens: e.measured for e in end_to_end(switch())}
    assert by_tokens[64].value == pytest.approx(281, abs=5)
    assert by_tokens[32].status == "not-measured"


def test_nothing_measured_is_a_status_at_every_length() -> None:
    for found in end_to_end([]):
        assert found.reduction.status == "not-estimable"
        assert found.reduction.note
