"""One experiment alone, as a notebook calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.errors import ParamsError
from prefixkit.experiments import run_one
from tests.experiments.support import of, profile


def test_only_the_named_experiment_is_measured(tmp_path: Path) -> None:
    chosen = profile(tmp_path, mutation={"prompt_tokens": 200})
    records = run_one("mutation", profile=chosen, out=tmp_path / "out", progress=lambda _: None, repeats=1)
    assert {p["experiment"] for p in of(records, "probe")} == {"mutation"}
    assert {p["condition"].get("round") for p in of(records, "probe") if p["phase"] != "warmup"} == {1}
    assert of(records, "end")[-1]["status"] == "ok"
    again = run_one("mutation", profile=chosen, out=tmp_path / "out", progress=lambda _: None, repeats=1)
    assert len(again) == len(records)


def test_an_unknown_name_or_parameter_is_refused_before_anything_starts(tmp_path: Path) -> None:
    chosen = profile(tmp_path)
    with pytest.raises(ParamsError, match="unknown experiment"):
        run_one("mutations", profile=chosen, out=tmp_path / "out")
    with pytest.raises(ParamsError, match="repeat"):
        run_one("mutation", profile=chosen, out=tmp_path / "out", repeat=1)
    assert not (tmp_path / "out").exists()
