"""Several engines in the article: sums over engines, pairs of routings, and nothing where there is one engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from prefixkit.article import Data, compute, length, load, summary
from prefixkit.article.affinity import SECTION, kept, requests
from prefixkit.claims import Claims
from tests.article.test_sections import context
from tests.fakes import records
from tests.fakes.more_records import affinity


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines")
    experiments = (records.switch, records.length, affinity)
    return records.write(path, *(records.local(name, experiments) for name in ("off", "on")))


@pytest.fixture(scope="module")
def data(folder: Path) -> Data:
    return load(folder)


def test_engines_add_up_to_the_total_and_to_what_requests_report(data: Data) -> None:
    claims = compute(data)
    for key in ("affinity_balanced_1", "affinity_sticky_4", "engines_switch", "engines_length"):
        for part in ("queries", "hits"):
            parts = [claims.number(f"{key}_engine_{engine}_{part}") for engine in "01"]
            assert sum(p for p in parts if p is not None) == claims.number(f"{key}_total_{part}")
        assert claims.number(f"{key}_cached") == claims.number(f"{key}_total_hits")


def test_the_gain_is_the_mean_over_pairs_of_one_place(data: Data) -> None:
    rows = requests(data)
    sides = {r: rows[(rows["users"] == 1) & (rows["routing"] == r)].sort_values(["round", "position"])
             for r in ("balanced", "sticky")}  # fmt: skip
    apart = sides["balanced"]["ttft_ms"].to_numpy() - sides["sticky"]["ttft_ms"].to_numpy()
    claim = compute(data)["affinity_saved_1_ms"]
    assert claim.value == pytest.approx(apart.mean())
    assert claim.ci and claim.ci[0] > 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_engine_has_a_row_and_all_have_one(folder: Path, lang: str) -> None:
    ctx = context(folder, lang)
    table = SECTION.tables["affinity"](ctx)
    assert table and len(table.rows) == 4 * 3
    engines = SECTION.tables["engines"](ctx)
    assert engines and len(engines.rows) == 2 * 3
    assert "@fig-affinity" in SECTION.sentences["affinity"](ctx)
    assert "@tbl-engines" in SECTION.sentences["affinity"](ctx)


def test_one_engine_makes_no_claims(tmp_path: Path) -> None:
    records.write(tmp_path, *(records.local(name) for name in ("off", "on")))
    claims = compute(load(tmp_path))
    assert not [name for name in claims if name.startswith(("engines", "affinity"))]
    assert "one engine" in SECTION.sentences["affinity"](context(tmp_path))
    assert kept(context(tmp_path)) is None


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_affinity_gains_stands_in_the_abstract_and_in_the_advice(folder: Path, lang: str) -> None:
    ctx = context(folder, lang)
    gained = kept(ctx)
    assert gained
    for sentences in (summary.SECTION.sentences["abstract"](ctx), length.SECTION.sentences["pays"](ctx)):
        assert gained["saved"] in sentences and gained["reduction"] in sentences


def test_a_gain_that_is_noise_is_not_in_the_abstract(folder: Path) -> None:
    ctx = context(folder)
    claims = (replace(c, ci=(-1.0, 9.0)) if c.name == "affinity_saved_1_ms" else c for c in ctx.claims.values())
    assert kept(replace(ctx, claims=Claims(claims))) is None


def test_the_title_tells_how_several_cards_serve(tmp_path: Path) -> None:
    arms = [records.local(name) for name in ("off", "on")]
    for arm in arms:
        args = {"tensor_parallel_size": 2, "data_parallel_size": 1}
        records.begin(arm, gpu="2 x NVIDIA H200", params={"server": {"engine_args": args}})
    claims = compute(load(records.write(tmp_path, *arms)))
    assert claims["machine_name"].value == "2 × NVIDIA H200 (TP 2)"
