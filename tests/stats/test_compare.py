"""Two runs compared, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from prefixkit.stats import compare
from tests.stats.simulated import run


def header(**facts: Any) -> dict[str, Any]:
    return {
        "record": "run", "model": {"name": "m", "weights": "real"}, "dtype": "bfloat16", "block_size": 16,
        "vllm": "0.32.0", **facts,
    }  # fmt: skip


def test_equal_runs_show_no_difference() -> None:
    found = compare([header(), *run(seed=1)], [header(vllm="0.33.0"), *run(seed=2)])
    assert found.status == "ok"
    assert found.changed == {"vllm": ("0.32.0", "0.33.0")}
    assert "No difference seen in 4 quantities" in found.note
    assert all(d.difference.ci for d in found.differences)


def test_a_faster_second_run_differs_with_an_interval() -> None:
    found = compare([header(), *run(seed=1)], [header(), *run(seed=2, off_slope=180.0)])
    slope = next(d for d in found.differences if d.name == "slope, off")
    assert slope.differs
    assert not slope.difference.excludes(-27.6)


def test_means_are_compared_at_a_length_that_both_measured() -> None:
    near, far = run(seed=1, lengths=(150, 200, 280)), run(seed=2, lengths=(250, 900, 2000))
    level = next(d for d in compare([header(), *near], [header(), *far]).differences if d.name.startswith("mean"))
    assert 250 <= int(level.name.split()[3].replace(",", "")) <= 280
    assert level.first.status == level.second.status == "ok"


def test_runs_without_a_common_length_have_no_means_to_compare() -> None:
    near, far = run(seed=1, lengths=(150, 200, 280)), run(seed=2, lengths=(500, 900, 2000))
    means = [d for d in compare([header(), *near], [header(), *far]).differences if d.name.startswith("mean")]
    assert [d.difference.value for d in means] == [None, None]
    assert "no range of lengths in common" in means[0].difference.note


@pytest.mark.parametrize(
    "other", [{"dtype": "float16"}, {"block_size": 32}, {"model": {"name": "n", "weights": "real"}},
              {"model": {"name": "m", "weights": "random"}}],
)  # fmt: skip
def test_another_model_dtype_or_block_size_is_refused(other: dict[str, Any]) -> None:
    found = compare([header(), *run(seed=1)], [header(**other), *run(seed=2)])
    assert found.status == "refused"
    assert found.differences == ()
    assert "Not comparable" in found.note


def test_dtype_is_read_from_the_parameters_of_older_records() -> None:
    old = {**header(), "params": {"server": {"engine_args": {"dtype": "float16"}}}}
    del old["dtype"]
    assert compare([old], [header()]).status == "refused"


def test_runs_of_other_experiments_servers_do_not_count() -> None:
    found = compare([header(), header(block_size=128, experiment="blocks")], [header()])
    assert found.status == "ok"
    assert "Nothing could be compared" in found.note
