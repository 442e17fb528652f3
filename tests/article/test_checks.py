"""What is said beside the two lines: the pooled model, steps, and why nothing was gained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prefixkit.article.checks import SECTION
from tests.article.test_sections import computed, context
from tests.fakes import records


def said(folder: Path, lang: str = "en") -> str:
    return SECTION.sentences["checks"](context(folder, lang))


def test_the_interaction_is_the_difference_of_the_slopes(case: Callable[[str], Path]) -> None:
    claims = computed(case("core"))[1]
    interaction = claims["pooled_slope_on_minus_off_ms_per_1k"]
    assert interaction.value == pytest.approx(-float(claims["slope_difference_ms_per_1k"].value or 0))
    assert interaction.ci and interaction.ci[1] < 0
    assert "interaction of arm and length" in said(case("core"))
    assert "交互项" in said(case("core"), "zh")


def test_steps_that_cannot_be_told_are_named_once(case: Callable[[str], Path]) -> None:
    assert said(case("core")).count("cannot be told from the line") == 1
    assert "prefill chunks" in said(case("core"))


def test_on_a_line_that_curves_no_step_is_claimed(tmp_path: Path) -> None:
    world = records.World(gamma_ms=0.00015)
    arms = [records.local(name, world=world) for name in ("off", "on")]
    for arm in arms:
        arm.records[0]["params"]["server"]["engine_args"]["max_num_batched_tokens"] = 1024
    claims = computed(records.write(tmp_path, *arms))[1]
    assert claims["prefill_chunk_tokens"].value == 1024
    assert claims["chunk_step_ms"].value is None


def test_where_nothing_was_gained_it_says_what_could_hide_it(case: Callable[[str], Path]) -> None:
    assert "though the off slope predicts" in said(case("no_help"))
    assert "found nothing in the cache" in said(case("no_hits"))
    assert "off minus on" not in said(case("core"))
