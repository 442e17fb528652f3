"""Working sets around the KV capacity, on a server of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments.own_server import with_engine_args
from prefixkit.params import load_params
from prefixkit.records import Record
from tests.experiments.support import measure, of, profile

EVICTION = {"num_gpu_blocks": 61, "ratios": [0.5, 2.0], "prefix_tokens": 90, "passes": 2}


def run(folder: Path, arm: str = "on", **changes: object) -> list[Record]:
    path = profile(folder, switch=False, length=False, eviction={**EVICTION, **changes})
    return measure(path, arm, folder / "out")


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    return run(tmp_path_factory.mktemp("eviction"), orders=["cyclic", "skewed"])


def sent(records: list[Record], **condition: object) -> list[Record]:
    found = [p for p in of(records, "probe", experiment="eviction") if p["phase"] != "warmup"]
    return [p for p in found if condition.items() <= p["condition"].items()]


def rate(probes: list[Record]) -> float:
    return sum(p["cached_tokens"] for p in probes) / sum(p["prompt_tokens"] for p in probes)


def test_it_runs_on_a_small_server_of_its_own(on: list[Record]) -> None:
    arm, own = of(on, "run")
    assert arm.get("experiment") is None
    assert own["experiment"] == "eviction"
    assert own["kv_capacity_tokens"] == 61 * 16 < arm["kv_capacity_tokens"]
    assert own["params_hash"] == arm["params_hash"]


def test_a_set_that_fits_hits_and_one_of_twice_the_capacity_in_cyclic_order_does_not(on: list[Record]) -> None:
    small, large = (sent(on, order="cyclic", ratio=ratio) for ratio in (0.5, 2.0))
    assert rate([p for p in small if p["phase"] == "warm"]) > 0.85
    assert rate([p for p in large if p["phase"] == "warm"]) < 0.1
    assert {p["condition"]["pass"] for p in small} == {0, 1, 2}
    for probes, ratio in ((small, 0.5), (large, 2.0)):
        assert probes[0]["condition"]["load"] == pytest.approx(ratio, abs=0.1)
        assert probes[0]["condition"]["capacity_tokens"] == 61 * 16


def test_a_skewed_order_still_hits_beyond_the_capacity(on: list[Record]) -> None:
    assert rate([p for p in sent(on, order="skewed", ratio=2.0) if p["phase"] == "warm"]) > 0.2


def test_hits_are_those_of_a_pool_of_that_size(on: list[Record]) -> None:
    for order, ratio in (("cyclic", 0.5), ("cyclic", 2.0), ("skewed", 0.5), ("skewed", 2.0)):
        probes = sent(on, order=order, ratio=ratio)
        predicted = sum(p["condition"]["predicted_cached_tokens"] for p in probes)
        total = sum(p["prompt_tokens"] for p in probes)
        assert abs(sum(p["cached_tokens"] for p in probes) - predicted) <= 0.05 * total


def test_each_working_set_is_counted(on: list[Record]) -> None:
    counters = of(on, "counters", experiment="eviction")
    assert {c["scope"] for c in counters} == {"cyclic/0.5", "cyclic/2", "skewed/0.5", "skewed/2", "all"}
    assert all(c["status"] == "ok" for c in counters)


def test_a_set_over_the_token_limit_is_skipped_with_its_size(tmp_path: Path) -> None:
    records = run(tmp_path, max_uncached_tokens=2000, ratios=[0.5, 2.0])
    assert {p["condition"]["ratio"] for p in sent(records)} == {0.5}
    (skip,) = of(records, "skip", experiment="eviction")
    assert "max_uncached_tokens" in skip["reason"]


def test_arm_off_has_no_such_experiment(tmp_path: Path) -> None:
    assert sent(run(tmp_path, "off")) == []


@pytest.mark.parametrize(
    "given", [{"block-size": 32, "dtype": "bfloat16"}, ["--dtype", "bfloat16"], "--dtype bfloat16"]
)
def test_engine_arguments_are_changed_in_whatever_form_they_are(given: object) -> None:
    params = load_params("cpu", server={"engine_args": given})
    changed = with_engine_args(params, block_size=64).server.engine_args
    if isinstance(changed, dict):
        assert changed["block_size"] == 64
        assert "block-size" not in changed
    else:
        assert (changed if isinstance(changed, str) else " ".join(changed)).endswith("--block-size 64")
