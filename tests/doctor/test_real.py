"""Hit rates and the doctor against real vLLM: on, off, two engines, a small cache, a restart."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prefixkit import Client, diagnose, expected_hits, hit_rate, load_params, paths, serve
from prefixkit.experiments import open_session
from prefixkit.experiments.opening import describe
from prefixkit.metrics import HitRate, cache_config, fetch, reconcile
from prefixkit.probe import Probe
from prefixkit.server import Server
from tests.fakes.answers import Answer

pytestmark = pytest.mark.real
WORDS = "river stone market winter garden letter window bridge paper copper valley music tower basket silver".split()  # noqa: SIM905
SMALL_BLOCKS = 64


def text(seed: str, words: int) -> list[dict[str, str]]:
    """Return a message of words that differ from the first block on for another seed."""
    chosen = random.Random(seed)
    body = " ".join(chosen.choice(WORDS) for _ in range(words))
    return [{"role": "user", "content": f"{body}. Which of these words comes first in a dictionary?"}]


def settled(server: Server, before: list[str], probes: list[Probe]) -> tuple[HitRate, list[str]]:
    """Return the rate once the counters hold every token that was sent; the engine adds them with its next step."""
    sent = sum(p.prompt_tokens or 0 for p in probes)
    until = time.monotonic() + 10
    while True:
        after = fetch(server.metrics_urls)
        rate = hit_rate(before, after)
        if (rate.queries or 0) >= sent or time.monotonic() > until:
            return rate, after


def own_server(tmp_path_factory: pytest.TempPathFactory, name: str, arm: str, **engine_args: Any) -> Server:
    log = tmp_path_factory.mktemp("real") / f"{name}.log"
    return serve(load_params("cpu", arm, server={"engine_args": engine_args}), log_path=log)


@pytest.fixture(scope="module")
def two_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two engines with a small cache each; the last test that uses it kills it."""
    small = {"num_gpu_blocks_override": SMALL_BLOCKS, "max_model_len": 1024}
    with own_server(tmp_path_factory, "two", "on", data_parallel_size=2, **small) as server:
        yield server


def test_counters_replies_and_arithmetic_agree_on_a_real_server(real_on: Server) -> None:
    with Client(real_on.url, real_on.model) as client:
        before = fetch(real_on.metrics_urls)
        block = cache_config(before).block_size
        assert block
        messages = text("agree", 600)
        probes = [client.probe(messages) for _ in range(3)]
        rate, after = settled(real_on, before, probes)
    length = probes[0].prompt_tokens
    assert length, probes
    predicted = 2 * expected_hits(length, length, block)
    assert [p.cached_tokens for p in probes] == [0, predicted // 2, predicted // 2]
    assert (rate.status, rate.family, rate.unit) == ("ok", "vllm:prefix_cache", "tokens")
    assert (rate.queries, rate.hits) == (3 * length, predicted)
    found = reconcile(rate, [p.record() for p in probes], predicted, before=before, after=after)
    assert found.agree is True, found
    assert found.balanced is True, found
    assert found.sources is not None
    assert found.sources["local_cache_hit"] == predicted


def test_a_prompt_shorter_than_a_block_and_a_changed_first_token_do_not_hit(real_on: Server) -> None:
    with Client(real_on.url, real_on.model) as client:
        before = fetch(real_on.metrics_urls)
        block = cache_config(before).block_size or 0
        short = [{"role": "user", "content": "Hi"}]
        length = len(client.tokenize(short))
        probes = [client.probe(short) for _ in range(2)]
        long = text("first", 400)[0]["content"]
        changed = [[{"role": "user", "content": f"{word} {long}"}] for word in ("Alpha", "Omega")]
        overhead = length - 1
        probes += [client.probe(m) for m in changed]
        rate, _ = settled(real_on, before, probes)
    assert probes[1].cached_tokens == expected_hits(length, length, block)
    # Only whole blocks of the template before the first changed word can be shared.
    assert (probes[3].cached_tokens or 0) <= expected_hits(overhead, 400, block)
    assert rate.hits == sum(p.cached_tokens or 0 for p in probes)


def test_the_doctor_finds_nothing_wrong_with_the_default_server(real_on: Server) -> None:
    found = diagnose(real_on.url, log=real_on.log_path)
    assert found.exit_code == 0, found
    names = {c.name: c for c in found.checks}
    assert names["live-repeat"].status == "ok", found
    assert names["live-blocks"].status == "ok", found


def test_a_failing_metrics_page_leaves_the_times_of_a_real_server(real_on: Server, answer: Answer) -> None:
    found = diagnose(real_on.url, metrics_urls=[answer(b"multiprocess directory is gone", 500)])
    names = {c.name: c for c in found.checks}
    assert "HTTP 500" in names["metrics"].found
    assert "PROMETHEUS_MULTIPROC_DIR" in names["metrics"].remedy
    assert names["live-repeat"].status == "ok", found


def test_two_engines_are_summed_and_each_misses_first(two_engines: Server) -> None:
    with Client(two_engines.url, two_engines.model) as client:
        before = fetch(two_engines.metrics_urls)
        probes = [client.probe(text("two", 400)) for _ in range(4)]
        rate, after = settled(two_engines, before, probes)
    assert cache_config(after).engines == 2
    assert set(rate.per_engine) == {"0", "1"}
    assert rate.queries == sum(p.prompt_tokens or 0 for p in probes)
    assert rate.hits == sum(p.cached_tokens or 0 for p in probes)
    assert rate.hits == sum(c["hits"] for c in rate.per_engine.values())


def test_a_working_set_beyond_the_cache_is_called_eviction(two_engines: Server) -> None:
    with Client(two_engines.url, two_engines.model) as client:
        before = fetch(two_engines.metrics_urls)
        config = cache_config(before)
        assert config.num_gpu_blocks == 2 * SMALL_BLOCKS
        assert config.kv_capacity_tokens
        prompts = [text(f"set {n}", 600) for n in range(8)]
        probes = [client.probe(m) for m in prompts * 2]
        rate, after = settled(two_engines, before, probes)
    lengths = [p.prompt_tokens or 0 for p in probes]
    assert all(lengths), probes
    assert sum(lengths[:8]) > config.kv_capacity_tokens
    records = [{**p.record(), "phase": "cold" if n < 8 else "warm"} for n, p in enumerate(probes)]
    predicted = sum(expected_hits(length, length, config.block_size or 1) for length in lengths[8:])
    found = reconcile(rate, records, predicted, before=before, after=after, working_set_tokens=sum(lengths[:8]))
    assert (found.agree, found.cause) == (False, "eviction"), found


def test_a_client_that_keeps_to_one_engine_finds_all_but_the_first_request(two_engines: Server, tmp_path: Path) -> None:
    content = yaml.safe_load((paths.PARAMS / "cpu.yaml").read_text("utf-8"))
    visits = {"prefixes": 2, "prefix_tokens": 96, "requests": 3, "concurrency": [1], "repeats": 1}
    content["experiments"] = {"warmup_requests": 1, "switch": False, "length": False, "affinity": visits}
    profile = tmp_path / "two.yaml"
    profile.write_text(yaml.safe_dump(content), "utf-8")
    attach = describe(two_engines, tmp_path / "running.json")
    with open_session(profile, "on", tmp_path / "out", attach=attach, progress=lambda _: None) as session:
        session.run("affinity")
        session.close("interrupted", "all that is wanted")
    counters = [r for r in session.records if r["record"] == "counters" and r["scope"] != "all"]
    probes = [r for r in session.records if r["record"] == "probe" and r["phase"] != "warmup"]
    assert {r["scope"] for r in counters} == {"balanced/1", "sticky/1"}
    for record in counters:
        own = [p for p in probes if p["cell"] == record["cell"]]
        assert len(own) == 6 and not any(p["error"] for p in own)
        assert record["reconciliation"]["agree"] is True, record
        assert sum(e["hits"] for e in record["per_engine"].values()) == sum(p["cached_tokens"] for p in own)
    for probe in probes:
        if (c := probe["condition"])["routing"] == "sticky":
            assert probe["cached_tokens"] == c["predicted_cached_tokens"], probe
            assert bool(probe["cached_tokens"]) is (c["request"] > 1)
    (sticky,) = [r for r in counters if r["scope"] == "sticky/1"]
    assert [e["queries"] > 0 for e in sticky["per_engine"].values()] == [True, True]


def test_a_killed_server_leaves_no_rate_and_one_with_the_cache_off_says_so(
    two_engines: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    last_page, pid = fetch(two_engines.metrics_urls), two_engines.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with own_server(tmp_path_factory, "off", "off") as server:
        gone = hit_rate(last_page, fetch(server.metrics_urls))
        assert (gone.status, gone.hit_rate) == ("restarted", None), gone
        check_off(server)


def check_off(server: Server) -> None:
    """See that a server with the cache off shows its counters, at zero, and that the doctor says off."""
    with Client(server.url, server.model) as client:
        before = fetch(server.metrics_urls)
        probes = [client.probe(text("off", 400)) for _ in range(2)]
        after = fetch(server.metrics_urls)
    rate = hit_rate(before, after)
    assert (rate.status, rate.queries, rate.hits, rate.hit_rate) == ("disabled", 0, 0, None), rate
    assert rate.family == "vllm:prefix_cache"
    assert cache_config(after).enable_prefix_caching is False
    assert all(not p.cached_tokens for p in probes)
    found = diagnose(server.url)
    assert [c.name for c in found.checks if c.status == "failed"] == ["cache-off"], found
    assert Path(str(server.log_path)).exists()
