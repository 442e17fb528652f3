"""The house style: reproducible files, Chinese letters, colours that can be told apart."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from prefixkit.figures.cloud import models
from prefixkit.figures.length import reduction
from prefixkit.figures.style import COLOURS, MARKS, Picture, fitting, save
from prefixkit.words import words


def picture(lang: str = "en") -> Picture:
    rows = pd.DataFrame({"prompt_tokens": [64, 512], "reduction": [0.2, 0.9], "low": [0.1, 0.85], "high": [0.3, 0.95]})
    return reduction(rows, words(lang))


def test_equal_data_give_equal_files(tmp_path: Path) -> None:
    first, second = (save(picture(), tmp_path / name, "reduction") for name in "ab")
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_a_figure_is_saved_with_its_data(tmp_path: Path) -> None:
    svg, png, csv = save(picture(), tmp_path, "reduction")
    assert svg.read_text("utf-8").startswith("<svg")
    assert "<script" not in svg.read_text("utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert list(pd.read_csv(csv)["reduction"]) == [0.2, 0.9]


def test_chinese_labels_have_glyphs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    save(picture("zh"), tmp_path, "reduction")
    assert not [w for w in recwarn if "Glyph" in str(w.message)]
    assert "findfont" not in caplog.text


def test_labels_that_would_overlap_on_a_logarithmic_axis_are_left_out() -> None:
    lengths = [52, 84, 353, 681, 1337, 2649, 3961, 8212, 16404, 24985, 30020]
    shown = [x for x, fits in zip(lengths, fitting(lengths, [f"{x:,}" for x in lengths]), strict=True) if fits]
    assert (shown[0], shown[-1]) == (52, 30020)
    assert 24985 not in shown and {353, 1337, 8212} <= set(shown)
    assert fitting([512], ["512"]) == [True]


# How each kind of missing cone sees a colour (Machado, Oliveira and Fernandes 2009, severity 1).
VISION = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
    return [sum(w * c for w, c in zip(row, to_rgb(colour), strict=True)) for row in matrix]


@pytest.mark.parametrize("vision", VISION)
def test_arms_are_told_apart_without_full_colour_vision(vision: str) -> None:
    for a, b in combinations(("off", "on", "cloud", "control"), 2):
        distance = sum(
            (x - y) ** 2
            for x, y in zip(seen(COLOURS[a], VISION[vision]), seen(COLOURS[b], VISION[vision]), strict=True)
        )
        assert distance > 0.05, (a, b)


def test_a_model_id_with_dollar_signs_is_no_formula(tmp_path: Path) -> None:
    rows = pd.DataFrame(
        {"model": [r"$\frac{", "a$b$c"], "experiment": "switch", "prompt_tokens": 9, "ttft_ms": [1.0, 2.0]}
    )
    assert save(models(rows, {}, words("en")), tmp_path, "cloud")


def test_arms_differ_in_their_marks_too() -> None:
    marks = [MARKS[arm] for arm in ("off", "on", "cloud", "control")]
    assert len(set(marks)) == len(marks)
