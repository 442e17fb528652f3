"""The settings in force, as the server itself reports them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from prefixkit.metrics import CacheConfig, MetricsError, cache_config, fetch, totals
from prefixkit.server.http import Http

_QUERIES = ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")


@dataclass(frozen=True, slots=True)
class Effective:
    """What the server says of itself; None is "it does not say"."""

    enable_prefix_caching: bool | None = None
    block_size: int | None = None
    kv_capacity_tokens: int | None = None
    dtype: str | None = None
    max_model_len: int | None = None
    vllm: str | None = None
    engines: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings, how many prefix-cache queries were counted so far, and what could not be read."""

    effective: Effective
    queries: float | None
    notes: tuple[str, ...]


def read(http: Http, metrics_urls: Sequence[str], log_text: str, model: str, *, version: str | None = None) -> Reading:
    """Ask /metrics, the start-up log, /v1/models and /version; `version` is what the command was found to start."""
    notes: list[str] = []
    pages: list[str] = []
    try:
        pages = fetch(list(metrics_urls), timeout_s=20, api_key=http.api_key)
        config = cache_config(pages)
    except MetricsError as error:
        notes.append(f"metrics: {error}")
        config = CacheConfig()
    logged = from_log(log_text)
    entry = next((m for m in http.models() if m.get("id") == model), {})
    length = entry.get("max_model_len")
    flag = config.enable_prefix_caching
    effective = Effective(
        enable_prefix_caching=logged.enable_prefix_caching if flag is None else flag,
        block_size=config.block_size or logged.block_size,
        kv_capacity_tokens=config.kv_capacity_tokens or logged.kv_capacity_tokens,
        dtype=logged.dtype,
        max_model_len=length if isinstance(length, int) else logged.max_model_len,
        vllm=http.version() or logged.vllm or version,
        engines=config.engines or None,
    )
    counts = [totals(pages, name) for name in _QUERIES]
    return Reading(effective, next((c for c in counts if c is not None), None), tuple(notes))


def from_log(text: str) -> Effective:
    """Return what a start-up log says."""
    config = re.search(r"Initializing an? (?:V\d )?LLM engine \(v([^)]+)\) with config: (.*)", text)
    line = config.group(2) if config else ""
    caching = re.search(r"enable_prefix_caching=(True|False)", line)
    dtype = re.search(r"\bdtype=(?:torch\.)?(\w+)", line)
    length = re.search(r"max_seq_len=(\d+)", line)
    blocks = re.findall(r"Setting attention block size to (\d+) tokens", text)
    # one line for each engine; workers of one engine may repeat its line
    sizes = dict(re.findall(r"(\(EngineCore\S*|)[^\n]*KV cache size: ([\d,]+) tokens", text))
    return Effective(
        enable_prefix_caching=caching.group(1) == "True" if caching else None,
        block_size=int(blocks[-1]) if blocks else None,
        kv_capacity_tokens=sum(int(size.replace(",", "")) for size in sizes.values()) or None,
        dtype=dtype.group(1) if dtype else None,
        max_model_len=int(length.group(1)) if length else None,
        vllm=config.group(1) if config else None,
    )


def contradiction(wanted: bool | None, reading: Reading) -> str:
    """Return how the server differs from its arm, naming both values, or nothing."""
    if wanted is None:
        return ""
    actual = reading.effective.enable_prefix_caching
    if actual is not None and actual is not wanted:
        state = "on" if actual else "off"
        return (
            f"prefix caching is {state} in the server (it reports enable_prefix_caching={actual}) "
            f"but the arm asks for enable_prefix_caching={wanted}"
        )
    if wanted is False and reading.queries:
        return (
            f"prefix caching is on in the server (it counted {reading.queries:.0f} prefix-cache queries) "
            "but the arm asks for enable_prefix_caching=False"
        )
    return ""
