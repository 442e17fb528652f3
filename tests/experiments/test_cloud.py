from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.experiments import arm_state
from prefixkit.experiments.cloud_plan import Plan, wanted, within
from prefixkit.params import load_arm
from tests.experiments.support import measure, of, profile, start
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm

KEY = "sk-test-0123456789abcdef"


def gateway(*models: str, key: str = KEY) -> FakeVllm:
    return FakeVllm(Settings(gateway=True, models=models or ("gpt-4o-mini",), api_key=key, max_model_len=100_000))


def configure(monkeypatch: pytest.MonkeyPatch, url: str, key: str = KEY) -> None:
    monkeypatch.setenv("TAOTOKEN_BASE_URL", url)
    monkeypatch.setenv("TAOTOKEN_API_KEY", key)


def arm_file(folder: Path, **cloud: object) -> str:
    """Write an arm file, since params/cloud.yaml names its own models."""
    lines = "".join(f"  {name}: {value}\n" for name, value in cloud.items())
    path = folder / "cloud.yaml"
    path.write_text(f"enable_prefix_caching: null\ncloud:\n{lines}")
    return str(path)


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_switch_and_two_lengths_are_measured_with_either_spelling_of_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    with gateway() as fake:
        configure(monkeypatch, fake.root_url + ending)
        records = measure(profile(tmp_path), "cloud", tmp_path / "out")
    assert records[-1]["status"] == "ok"
    assert [p["phase"] for p in of(records, "probe", experiment="switch")] == ["cold"] + ["warm"] * 7
    assert {p["target_tokens"] for p in of(records, "probe", experiment="length")} == {96, 192}
    assert {p["condition"]["model"] for p in of(records, "probe")} == {"gpt-4o-mini"}
    assert not of(records, "counters")
    assert of(records, "run")[0]["host"] == "127.0.0.1"


def test_the_key_is_checked_with_a_ping_of_five_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), "cloud", tmp_path / "out")
    assert fake.requests[0]["messages"] == [{"role": "user", "content": "ping"}]
    assert fake.requests[0]["max_tokens"] == 5
    assert of(records, "probe", phase="warmup")[0]["experiment"] == "cloud"


def test_no_field_is_sent_that_only_vllm_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        measure(profile(tmp_path), "cloud", tmp_path / "out")
    known = {"model", "messages", "stream", "stream_options", "max_tokens", "temperature"}
    assert set().union(*fake.requests) <= known


def test_the_key_is_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        measure(profile(tmp_path), "cloud", tmp_path / "out")
        assert f"Bearer {KEY}" in fake.headers[0].values()
    assert not [p for p in (tmp_path / "out").rglob("*") if p.is_file() and KEY in p.read_text()]


def test_a_missing_key_is_a_skip_that_says_how_to_set_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAOTOKEN_API_KEY", raising=False)
    monkeypatch.setenv("TAOTOKEN_BASE_URL", "http://127.0.0.1:9")
    path = profile(tmp_path)
    records = measure(path, "cloud", tmp_path / "out")
    (skip,) = of(records, "skip")
    assert skip["reason"] == "TAOTOKEN_API_KEY is not set in this process"
    assert "export TAOTOKEN_API_KEY=" in skip["remedy"]
    assert "$env:TAOTOKEN_API_KEY" in skip["remedy"]
    assert records[-1]["status"] == "skipped"
    before = (tmp_path / "out/cloud.jsonl").read_bytes()
    assert start(path, "cloud", tmp_path / "out").status == "skipped"
    assert (tmp_path / "out/cloud.jsonl").read_bytes() == before


def test_once_the_key_is_there_a_skipped_arm_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = profile(tmp_path)
    measure(path, "cloud", tmp_path / "out")
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        assert arm_state(tmp_path / "out", path, "cloud").needs_run
        records = measure(path, "cloud", tmp_path / "out")
    assert records[-1]["status"] == "ok"
    assert not arm_state(tmp_path / "out", path, "cloud").needs_run


def test_a_refused_key_is_a_skip_with_the_gateways_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway(key="another") as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), "cloud", tmp_path / "out")
    (skip,) = of(records, "skip")
    assert "401" in skip["reason"]
    assert KEY not in str(records)
    assert records[-1]["status"] == "paused"


def test_one_model_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway("good") as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), arm_file(tmp_path, models="[bad, good]"), tmp_path / "out")
    assert [s["model"] for s in of(records, "skip")] == ["bad"]
    answered = of(records, "probe", error=None)
    assert {p["condition"]["model"] for p in answered} == {"good"}
    assert arm_state(tmp_path / "out", profile(tmp_path), str(tmp_path / "cloud.yaml")).needs_run


def test_a_model_that_was_measured_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = arm_file(tmp_path, models="[late, good]")
    with gateway("good") as fake:
        configure(monkeypatch, fake.url)
        measure(profile(tmp_path), arm, tmp_path / "out")
    with gateway("good", "late") as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), arm, tmp_path / "out")
    assert {request["model"] for request in fake.requests} == {"late"}
    assert records[-1]["status"] == "ok"


def test_the_cost_is_announced_before_anything_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, str]] = []
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        session = start(profile(tmp_path), "cloud", tmp_path / "out")
        session.progress = lambda line: said.append((len(fake.requests), line))
        with session:
            session.run_all()
    sent_before, line = next((n, line) for n, line in said if "prompt tokens" in line)
    assert sent_before == 0
    assert "never more than 50,000 tokens" in line


def test_the_budget_is_never_exceeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = arm_file(tmp_path, models="[gpt-4o-mini]", max_prompt_tokens=1500)
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), arm, tmp_path / "out")
    sent = sum(p["prompt_tokens"] for p in of(records, "probe"))
    assert 0 < sent <= 1500
    assert records[-1]["status"] == "ok"


def test_a_budget_that_is_far_too_small_is_a_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arm = arm_file(tmp_path, models="[gpt-4o-mini]", max_prompt_tokens=100)
    with gateway() as fake:
        configure(monkeypatch, fake.url)
        records = measure(profile(tmp_path), arm, tmp_path / "out")
    assert not fake.requests
    assert "max_prompt_tokens 100" in of(records, "skip")[0]["reason"]


def test_the_plan_gives_up_repeats_before_lengths_and_lengths_before_questions() -> None:
    full = Plan("en", 1488, 8, (256, 3072), 5)
    assert within(full, full.prompt_tokens) == full
    fewer = within(full, full.prompt_tokens - 1)
    assert fewer is not None
    assert (fewer.repeats, fewer.lengths) == (4, (256, 3072))
    small = within(full, 15_000)
    assert small is not None
    assert (small.repeats, small.lengths, small.questions) == (1, (256,), 8)
    assert within(full, 1_000) is None


def test_the_default_plan_fits_into_the_default_budget() -> None:
    for name in ("cpu", "gpu"):
        params = load_arm(name, "cloud")
        assert within(wanted(params.experiments), params.cloud.max_prompt_tokens) is not None
