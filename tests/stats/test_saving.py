"""Whole answers: time per output token, and the end-to-end saving."""

from __future__ import annotations

from typing import Any

import pytest

from prefixkit.stats import EndToEnd, end_to_end, tpot_test
from tests.stats.simulated import probe, run, switch


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
    by_tokens = {e.output_tokens: e for e in end_to_end(switch())}
    assert by_tokens[64].measured_ms.value == pytest.approx(281, abs=5)
    assert by_tokens[64].measured_reduction.value == pytest.approx(280 / (345 + 63 * 18), abs=0.005)
    assert by_tokens[32].measured_ms.status == by_tokens[32].measured_reduction.status == "not-measured"
    assert "switch.outputs" in by_tokens[32].measured_ms.note


def answer(arm: str, number: int, tokens: int, e2e_ms: float, **more: Any) -> dict[str, Any]:
    condition = {"question": number, "repeat": 0, "output_tokens": tokens}
    fields = {"experiment": "outputs", "e2e_ms": e2e_ms, "completion_tokens": tokens, "condition": condition}
    return probe(arm, "warm" if arm == "on" else "cold", 1500, 50, **{**fields, **more})


def measured(records: list[dict[str, Any]], tokens: int) -> EndToEnd:
    return end_to_end(records, output_tokens=(tokens,))[0]


def test_answers_sent_for_their_length_are_paired_by_question() -> None:
    level = {1: 1000.0, 2: 1100.0, 3: 1200.0}
    records = [answer("off", n, 32, ms + 300 + n) for n, ms in level.items()]
    records += [answer("on", n, 32, ms) for n, ms in level.items()]
    found = measured(records, 32)
    assert (found.measured_ms.value, found.measured_ms.n) == (pytest.approx(302), 3)
    # Questions differ by a hundred, the savings of one question by one: pairs see the savings alone.
    assert found.measured_ms.half_width == pytest.approx(4.303 / 3**0.5, rel=1e-3)
    assert found.measured_reduction.value == pytest.approx(302 / 1402)
    assert found.measured_reduction.ci is not None


def test_an_answer_without_partner_or_of_another_length_does_not_enter() -> None:
    records = [answer(arm, n, 32, 1000 + 10 * n - (200 if arm == "on" else 0)) for arm in ("off", "on") for n in (1, 2)]
    records += [answer("off", 3, 32, 9e5), answer("on", 4, 32, 9e5), answer("off", 5, 32, 9e5)]
    records += [answer("on", 5, 32, 9e5, completion_tokens=31), answer("on", 3, 32, 9e5, error={"kind": "timeout"})]
    found = measured(records, 32)
    assert (found.measured_ms.value, found.measured_ms.n) == (pytest.approx(200), 2)


def test_the_first_question_is_cold_on_both_sides_and_enters_neither() -> None:
    records = switch()
    for record in records:
        if record["condition"]["question"] == 1:
            record["ttft_ms"] = record["e2e_ms"] = 1e5
    (found,) = end_to_end(records, output_tokens=(64,))
    assert found.saved_ms.n == 14
    assert found.saved_ms.value == pytest.approx(280, abs=5)
    assert (found.measured_ms.n, found.measured_ms.value) == (7, pytest.approx(280, abs=6))


def test_records_without_questions_still_give_a_prediction() -> None:
    records = [{**record, "condition": {}} for record in switch()]
    (found,) = end_to_end(records, output_tokens=(64,))
    assert found.saved_ms.n == 15
    assert found.measured_ms.status == "not-measured"


def test_nothing_measured_is_a_status_at_every_length() -> None:
    for found in end_to_end([]):
        assert found.reduction.status == "not-estimable"
        assert found.reduction.note
