"""A run beside another one: ratios with intervals, the refusal, and nothing where no run is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit import paths
from prefixkit.article import Article, compute, load
from prefixkit.article.beside import SECTION
from prefixkit.article.data import write_settings
from prefixkit.errors import RecordsError
from tests.article.test_sections import context
from tests.fakes import records
from tests.fakes.records import World


def run(folder: Path, world: World, seed: int = 0, **changes: object) -> Path:
    arms = [records.local(name, world=world, seed=seed) for name in ("off", "on")]
    for arm in arms:
        arm.records[0].update(changes)
    return records.write(folder, *arms)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose other run has twice its slope with the cache off."""
    folder = tmp_path_factory.mktemp("pair")
    run(folder / "other", World(alpha_ms=18, beta_ms=1.04, cached_cost_ms=0.011), seed=1)
    write_settings(run(folder, World()), {"compare": str(folder / "other")})
    return folder


def test_ratios_are_other_over_this_with_an_interval(pair: Path) -> None:
    claims = compute(load(pair))
    for name in ("beside_slope_ratio_off", "beside_ttft_ratio_off"):
        claim = claims[name]
        assert claim.value == pytest.approx(2, rel=0.05)
        assert claim.ci and claim.ci[0] < float(claim.value) < claim.ci[1]
    assert claims["beside_slope_ratio_off"].value == pytest.approx(
        (claims.number("beside_there_slope_off_ms_per_1k") or 0)
        / (claims.number("beside_here_slope_off_ms_per_1k") or 1)
    )
    assert claims.number("beside_longest_tokens") == claims.number("longest_tokens")


def test_only_lengths_of_both_runs_make_the_slopes(tmp_path: Path) -> None:
    few = (256, 1024, 3072)
    world = World(gamma_ms=0.0001, noise=0.001)
    arms = [records.local(a, (lambda arm: records.length(arm, lengths=few),), world=world) for a in ("off", "on")]
    write_settings(records.write(tmp_path, *arms), {"compare": str(run(tmp_path / "other", world))})
    claims = compute(load(tmp_path))
    assert claims.number("beside_lengths") == 3
    assert claims.number("beside_slope_ratio_off") == pytest.approx(1, rel=0.005)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_it_is_said_drawn_and_tabulated(pair: Path, lang: str) -> None:
    ctx = context(pair, lang)
    assert "@fig-beside" in SECTION.sentences["beside"](ctx)
    picture, table = SECTION.figures["beside"](ctx), SECTION.tables["beside"](ctx)
    assert picture and set(picture.data["series"]) == {"off", "on"} and picture.data["run"].nunique() == 2
    assert table and len(table.rows) == 3


def test_what_differs_between_the_servers_is_named(pair: Path, tmp_path: Path) -> None:
    params = records.local("on").records[0]["params"]
    server = {**params["server"], "engine_args": {**params["server"]["engine_args"], "tensor_parallel_size": 2}}
    run(tmp_path, World(), params={**params, "server": server})
    write_settings(tmp_path, {"compare": str(pair / "other")})
    said = SECTION.sentences["beside"](context(tmp_path))
    assert "`tensor_parallel_size`: 2 / –" in said
    assert "`block_size`" not in said


def test_another_model_is_refused(pair: Path, tmp_path: Path) -> None:
    run(tmp_path, World(), model={"name": "another", "weights": "real"})
    write_settings(tmp_path, {"compare": str(pair / "other")})
    ctx = context(tmp_path)
    assert "cannot be set beside" in SECTION.sentences["beside"](ctx)
    assert "another" in SECTION.sentences["beside"](ctx)
    assert SECTION.figures["beside"](ctx) is None and SECTION.tables["beside"](ctx) is None
    assert "beside_slope_ratio_off" not in ctx.claims


def test_no_other_run_makes_no_claims(tmp_path: Path) -> None:
    run(tmp_path, World())
    assert not [name for name in compute(load(tmp_path)) if name.startswith("beside")]
    assert "No other run" in SECTION.sentences["beside"](context(tmp_path))


def test_a_parameter_of_the_notebook_names_the_run_too(pair: Path, tmp_path: Path) -> None:
    run(tmp_path, World())
    article = Article.open(tmp_path, tmp_path / "out", "en", str(pair / "other"))
    assert "beside_slope_ratio_on" in article.claims


def test_a_published_sets_name_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    run(tmp_path / "earlier", World(), seed=1)
    write_settings(run(tmp_path / "now", World()), {"compare": "earlier"})
    assert "beside_slope_ratio_off" in compute(load(tmp_path / "now"))
    write_settings(tmp_path / "now", {"compare": "gone"})
    with pytest.raises(RecordsError):
        compute(load(tmp_path / "now"))
