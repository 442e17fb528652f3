"""What a server says of itself, and whether that is what its arm asks for."""

from __future__ import annotations

import re

import pytest

from prefixkit.server import effective
from prefixkit.server.effective import Effective, Reading, contradiction, from_log
from prefixkit.server.http import Http
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm

V1_LOG = """
(EngineCore_DP0 pid=1) INFO 01-02 03:04:05 [core.py:1] Initializing a V1 LLM engine (v0.12.0) with config: model='m', \
kv_cache_dtype=auto, dtype=torch.float16, max_seq_len=8192, enable_prefix_caching=False, block_size=16
(EngineCore_DP0 pid=1) INFO 01-02 03:04:05 [k.py:1] GPU KV cache size: 10,000 tokens
(EngineCore_DP1 pid=2) INFO 01-02 03:04:05 [k.py:1] GPU KV cache size: 12,000 tokens
"""


def test_the_start_up_log_tells_what_the_pages_do_not() -> None:
    assert from_log(V1_LOG) == Effective(False, None, 22000, "float16", 8192, "0.12.0")
    old = "INFO 01-02 llm_engine.py:1] Initializing an LLM engine (v0.6.6) with config: enable_prefix_caching=True"
    assert from_log(old).enable_prefix_caching is True and from_log(old).vllm == "0.6.6"
    assert from_log("INFO [x] Setting attention block size to 528 tokens so that pages match").block_size == 528
    assert from_log("") == Effective()


def test_the_servers_page_counts_before_its_log() -> None:
    with FakeVllm(Settings(caching=True, max_model_len=512)) as fake:
        reading = effective.read(Http(fake.root_url), [fake.metrics_url], V1_LOG, "fake")
    assert reading.effective == Effective(True, 16, 64000, "float16", 512, "0.32.0", 1)
    assert reading.notes == ()


def test_an_unreadable_page_is_a_note_and_the_log_remains() -> None:
    with FakeVllm(Settings(metrics=False)) as fake:
        reading = effective.read(Http(fake.root_url), [fake.metrics_url], V1_LOG, "fake")
    assert reading.effective.enable_prefix_caching is False and "404" in reading.notes[0]


@pytest.mark.parametrize(
    ("wanted", "actual", "queries", "says"),
    [
        (True, True, 5.0, ""),
        (False, False, 0.0, ""),
        (None, True, 5.0, ""),
        (False, None, 0.0, ""),
        (True, None, None, ""),
        (False, True, 0.0, "reports enable_prefix_caching=True.*asks for enable_prefix_caching=False"),
        (True, False, 0.0, "reports enable_prefix_caching=False.*asks for enable_prefix_caching=True"),
        (False, None, 7.0, "counted 7 prefix-cache queries.*asks for enable_prefix_caching=False"),
    ],
)
def test_contradictions_name_both_values(
    wanted: bool | None, actual: bool | None, queries: float | None, says: str
) -> None:
    found = contradiction(wanted, Reading(Effective(enable_prefix_caching=actual), queries, ()))
    assert re.search(says, found) if says else found == ""
