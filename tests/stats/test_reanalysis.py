"""The reference articles, analysed again from the table that they print."""

from __future__ import annotations

import pytest

from prefixkit.stats import reanalyse
from prefixkit.stats.reanalysis import reference_rows


def test_every_fact_names_its_source() -> None:
    rows = reference_rows()
    assert len(rows) == 6
    assert all(row["source"] for row in rows)


def test_the_refit_differs_from_the_printed_off_line() -> None:
    found = reanalyse()
    assert found.fit.off.slope.value == pytest.approx(207.6, abs=0.05)
    assert found.fit.off.intercept.value == pytest.approx(24.4, abs=0.06)
    off = found.printed[0]
    assert off.worst_ms == pytest.approx(-36.3, abs=0.1)
    assert found.fit.intercept_difference.ci is not None
    assert not found.fit.intercept_difference.excludes(0)


def test_prefixes_were_longer_than_their_labels() -> None:
    found = reanalyse()
    assert found.tokens_per_unit == pytest.approx(82)
    assert found.fixed_tokens == pytest.approx(25)
    assert found.real_prefixes == pytest.approx((328, 656, 1312, 2624, 3936))


def test_the_switch_is_predicted_by_the_lines_and_its_first_request_was_warm() -> None:
    found = reanalyse()
    assert found.predicted_switch_ms.value == pytest.approx(299, abs=1)
    assert not found.predicted_switch_ms.excludes(found.measured_switch_ms)
    assert found.switch_reduction == pytest.approx(0.184, abs=0.001)
    assert found.first_request_was_warm
    assert any("87.5%" in finding for finding in found.findings)
    assert any("undecided" in finding for finding in found.findings)
