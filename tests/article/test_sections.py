"""Every section says, tabulates and draws whatever there is, in both languages."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import pytest

from prefixkit.article import Data, compute, load
from prefixkit.article.article import SECTIONS
from prefixkit.article.section import Context, reason
from prefixkit.claims import Claims, check, text
from prefixkit.words import slots, words
from tests.article.conftest import CASES
from tests.fakes import records
from tests.fakes.more_records import conversation, outputs
from tests.fakes.records import switch


@lru_cache(maxsize=32)
def computed(folder: Path) -> tuple[Data, Claims]:
    data = load(folder)
    return data, compute(data)


def context(folder: Path, lang: str = "en") -> Context:
    return Context(*computed(folder), words(lang))


def said(ctx: Context) -> str:
    return "\n".join(say(ctx) for section in SECTIONS.values() for say in section.sentences.values())


def shown(ctx: Context) -> set[str]:
    """Return the labels of the figures and tables that this data gives."""
    labels = {f"fig-{n}" for s in SECTIONS.values() for n, draw in s.figures.items() if draw(ctx) is not None}
    return labels | {f"tbl-{n}" for s in SECTIONS.values() for n, table in s.tables.items() if table(ctx) is not None}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", CASES)
def test_whatever_is_missing_every_sentence_and_table_can_be_made(
    case: Callable[[str], Path], name: str, lang: str
) -> None:
    ctx = context(case(name), lang)
    text = said(ctx)
    assert text
    assert not re.search(r"\bnan\b|\bNone\b", text)
    for section in SECTIONS.values():
        for label, tabulate in section.tables.items():
            if table := tabulate(ctx):
                frame = table.frame(ctx.words)
                assert frame.columns.is_unique, label
                assert not frame.isin(["nan", "None"]).to_numpy().any(), label
                assert ctx.say(f"table.{label}.caption")


@pytest.mark.parametrize("name", CASES)
def test_what_a_sentence_refers_to_is_shown(case: Callable[[str], Path], name: str) -> None:
    ctx = context(case(name))
    assert set(re.findall(r"@((?:fig|tbl)-[a-z]+)", said(ctx))) <= shown(ctx)


def test_every_figure_of_a_complete_run_has_caption_and_alternative_text(case: Callable[[str], Path]) -> None:
    for lang in ("en", "zh"):
        ctx = context(case("everything"), lang)
        for section in SECTIONS.values():
            for name in section.figures:
                assert "not measured" not in ctx.say(f"figure.{name}.alt"), name
                assert "未测量" not in ctx.say(f"figure.{name}.alt"), name
                assert ctx.say(f"figure.{name}.caption")


def test_a_complete_run_shows_every_figure_and_nothing_is_said_to_be_missing(case: Callable[[str], Path]) -> None:
    ctx = context(case("everything"))
    assert {f"fig-{n}" for s in SECTIONS.values() for n in s.figures} <= shown(ctx)
    assert "was not run" not in said(ctx)


def test_it_says_when_the_cache_did_not_help(case: Callable[[str], Path]) -> None:
    ctx = context(case("no_help"))
    assert "No saving can be told from noise" in said(ctx)
    assert "The cache helps here" not in said(ctx)


def test_it_says_when_there_was_not_one_hit(case: Callable[[str], Path]) -> None:
    assert "show not one hit" in said(context(case("no_hits")))


def test_it_says_why_the_cloud_arm_is_missing_and_how_to_have_it(case: Callable[[str], Path]) -> None:
    text = said(context(case("cloud_skipped")))
    assert "TAOTOKEN\\_API\\_KEY is not set in this process" in text
    assert "To have it, set the two variables" in text


def test_each_cloud_model_has_its_row_and_the_sentence_of_what_it_measures(case: Callable[[str], Path]) -> None:
    ctx = context(case("only_cloud"))
    table = SECTIONS["cloud"].tables["cloud"](ctx)
    assert table
    assert [row[0] for row in table.rows] == ["gpt-4o-mini", "qwen2.5-7b-instruct"]
    assert "network, queue and the provider's own cache" in said(ctx)


def test_it_names_a_missing_and_a_failed_arm(case: Callable[[str], Path]) -> None:
    assert "no records of the arm *cache off*" in said(context(case("off_missing")))
    text = said(context(case("off_failed")))
    assert "The arm *cache off* has not one answered request" in text
    assert "5 failed" in text


@pytest.mark.parametrize("end", ["interrupted", None])
def test_a_partly_measured_arm_is_called_that(tmp_path: Path, end: str | None) -> None:
    arm = records.local("on")
    if end is None:
        arm.records = [r for r in arm.records if r["record"] != "end"]
    else:
        arm.append("end", status=end, reason="stopped")
    records.write(tmp_path, records.local("off"), arm)
    text = said(context(tmp_path))
    assert f"The arm *cache on* is only partly measured** (it ended as: {end or 'unfinished'})" in text
    assert "The arm *cache off* is" not in text


def test_an_arm_that_was_refused_says_why(case: Callable[[str], Path]) -> None:
    assert "the server says enable\\_prefix\\_caching\\=False" in said(context(case("on_refused")))


@pytest.mark.parametrize(
    ("lang", "beside", "lacking"), [("en", "(n = 3)", "not measured"), ("zh", "（n = 3）", "没有实测")]
)
def test_whole_answers_that_were_measured_stand_beside_the_prediction(
    tmp_path: Path, lang: str, beside: str, lacking: str
) -> None:
    asked = (switch, partial(outputs, lengths=(8, 32)))
    records.write(tmp_path, *(records.local(name, asked) for name in ("off", "on")))
    ctx = context(tmp_path, lang)
    text = SECTIONS["output"].sentences["output"](ctx)
    assert text.count(beside) == 2
    assert text.count("n = 7") == 1  # the 64 tokens of the questions
    assert lacking in text and "`switch.outputs: [512]`" in text
    table = SECTIONS["output"].tables["output"](ctx)
    assert table
    rows = {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}
    assert list(rows) == ["1", "8", "32", "64", "512"]
    for tokens in ("8", "32"):
        for head in ("predicted_saved", "measured_saved", "predicted_reduction", "measured_reduction"):
            assert re.fullmatch(r"[\d.,−%]+ \(.+\)", rows[tokens][head]), head
        assert rows[tokens]["n"] == "3"
    assert rows["512"]["measured_saved"] == rows["512"]["n"] == "–"
    picture = SECTIONS["output"].figures["output"](ctx)
    assert picture
    seen = picture.data[picture.data["layer"] == "measured"]
    assert sorted(seen["tokens"]) == [8, 32, 64] and seen["low"].notna().all()


def test_without_whole_answers_it_says_how_to_have_them(case: Callable[[str], Path]) -> None:
    text = SECTIONS["output"].sentences["output"](context(case("core")))
    assert "Whole answers of 32, 512 tokens were not measured, only predicted" in text
    assert "`switch.outputs: [32, 512]`" in text


@pytest.mark.parametrize(("rounds", "said"), [(1, "take turns as independent"), (4, "each conversation as one value")])
def test_it_says_what_the_interval_of_a_conversation_takes_as_independent(
    tmp_path: Path, rounds: int, said: str
) -> None:
    records.write(tmp_path, *(records.local(name, (partial(conversation, rounds=rounds),)) for name in ("off", "on")))
    ctx = context(tmp_path)
    assert SECTIONS["conversation"].sentences["conversation"](ctx).count(said) == 1
    claim = ctx.claims["conversation_growing_reduction"]
    assert claim.ci and 0 < claim.ci[0] < float(claim.value or 0) < claim.ci[1] < 1
    assert ctx.number("conversation_growing_rounds") == rounds


def test_text_from_servers_and_models_is_not_markup(tmp_path: Path) -> None:
    from tests.fakes import records

    planted = "<script>alert(1)</script> [x](http://evil) *b* @fig-length `c`"
    records.write(tmp_path, records.cloud((planted,)), records.skipped("on", planted))
    text = said(context(tmp_path))
    assert "alert" in text
    assert "<script" not in text.replace("\\<script", "")
    assert not re.search(r"(?<!\\)[\[*@`]\w*(x|b|fig|c)\b(?=\]|\*|\\?`|-length)", text.split("alert")[1][:80])


def test_dummy_weights_are_said_in_the_abstract_and_in_the_limits(tmp_path: Path) -> None:
    from tests.fakes import records

    arm = records.Arm("on", records.World())
    records.begin(arm, model={"name": "qwen", "weights": "random"})
    records.switch(arm)
    ctx = context(records.write(tmp_path, arm))
    assert "weights are random" in SECTIONS["summary"].sentences["abstract"](ctx)
    assert "weights are random" in SECTIONS["summary"].sentences["limits"](ctx)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_arms_that_differ_beside_the_cache_are_said_in_the_abstract(tmp_path: Path, lang: str) -> None:
    slower = records.World(beta_ms=0.6)
    records.write(tmp_path, records.local("off"), records.local("on", world=slower))
    ctx = context(tmp_path, lang)
    assert ctx.claims["control_verdict"].value == "different"
    assert text(ctx.claims["control_reduction_longest"], lang, "full") in SECTIONS["summary"].sentences["abstract"](ctx)


def test_a_slope_reduction_without_a_bounded_interval_is_no_number_and_passes_no_check(tmp_path: Path) -> None:
    noise = records.World(beta_ms=0.0, cached_cost_ms=0.0, noise=0.5)
    records.write(tmp_path, *(records.local(name, world=noise, seed=3) for name in ("off", "on")))
    claims = compute(load(tmp_path))
    assert claims["slope_reduction"].value is None
    assert not any(answer.passed for answer in check(claims, "slope_reduction>=0.9, slope_reduction<0.9"))


def test_an_ill_fitting_intercept_is_called_curvature(tmp_path: Path) -> None:
    from tests.fakes import records

    world = records.World(gamma_ms=0.00015)
    records.write(tmp_path, *(records.local(name, world=world) for name in ("off", "on")))
    ctx = context(tmp_path)
    assert "not a fixed cost (curvature)" in SECTIONS["length"].sentences["fit"](ctx)


def test_private_prompts_stay_out_unless_asked_for(tmp_path: Path) -> None:
    from prefixkit.article.data import write_settings
    from tests.fakes import records
    from tests.fakes.more_records import workload

    arm = records.local("on", (workload,))
    for r in arm.records:
        for found in r.get("breaks") or []:
            found.update(text="secret plan", other_text="another plan")
    records.write(tmp_path, arm)
    for asked, seen in ((False, False), (True, True)):
        write_settings(tmp_path, {"show_prompts": asked})
        computed.cache_clear()
        ctx = context(tmp_path)
        table = SECTIONS["workload"].tables["breaks"](ctx)
        assert table and ("secret plan" in str(table.rows)) is seen


def test_both_catalogues_have_the_same_keys_and_places() -> None:
    english, chinese = words("en").entries, words("zh").entries
    assert english.keys() == chinese.keys()
    assert {k: slots(v) for k, v in english.items()} == {k: slots(v) for k, v in chinese.items()}


def test_what_the_client_adds_is_told_and_where_it_was_the_bottleneck(tmp_path: Path) -> None:
    slow = records.local("on")
    records.calibrated(slow, bottleneck=True)
    records.write(tmp_path, records.local("off"), slow)
    for lang, said in (("en", "The client was the bottleneck"), ("zh", "客户端是瓶颈")):
        limits = SECTIONS["summary"].sentences["limits"](context(tmp_path, lang))
        assert "0.4 " in limits or "0.42" in limits
        assert limits.count(said) == 1
        assert "1.3" in limits
    claims = computed(tmp_path)[1]
    assert claims["client_overhead_p50_ms"].value == 0.42
    assert claims["client_together_overhead_p50_ms"].value == 1.3


def test_records_without_calibration_claim_nothing_of_the_client(tmp_path: Path) -> None:
    arm = records.local("on")
    arm.records = [r for r in arm.records if r["record"] != "calibration"]
    records.write(tmp_path, arm)
    assert not [name for name in computed(tmp_path)[1] if name.startswith("client_")]
    assert "not measured in this run" in SECTIONS["summary"].sentences["limits"](context(tmp_path))


def test_warm_requests_that_found_nothing_decide_no_verdict(case: Callable[[str], Path]) -> None:
    text = said(context(case("no_hits")))
    assert "the warm requests found nothing in the cache, so nothing is saved there" in text
    assert "cannot tell from which prefix length on the cache pays" in text
    assert "does not pay" not in text


def test_known_reasons_of_skips_are_in_the_language_of_the_article(case: Callable[[str], Path]) -> None:
    ctx = context(case("cloud_skipped"), "zh")
    assert "本进程没有设置" in said(ctx)
    assert reason(ctx, {"reason": "switched off in the parameters"}) == "参数中已关闭"
    assert reason(ctx, {"reason": "the disk is not set in this process"}) == "the disk is not set in this process"
