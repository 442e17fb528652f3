"""The cache as the server and its log describe it: setting, metrics family, block size, capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixkit.doctor.check import Check
from prefixkit.doctor.server_log import LogFacts
from prefixkit.metrics import CacheConfig, HitRate, MetricsError, cache_config, fetch, hit_rate


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """What is known before the live test; the page is believed before the log."""

    config: CacheConfig
    enabled: bool | None
    block_size: int | None
    kv_capacity_tokens: int | None
    checks: tuple[Check, ...]


def cache_facts(metrics_urls: Sequence[str], log: LogFacts, version: str | None) -> CacheFacts:
    """Read the metrics pages and return the cache's settings with their checks."""
    try:
        pages = fetch(metrics_urls, timeout_s=5)
        now = hit_rate(pages, pages, version=version)
        config = cache_config(pages)
        checks = [_family(now)]
    except MetricsError as error:
        config = CacheConfig()
        missing = "HTTP 404" in error.message
        status = "warning" if missing else "failed"
        remedy = f"{error.remedy}; hit rates are not known without it, times are"
        checks = [Check("metrics", status, error.message, remedy, 50)]
    enabled = config.enable_prefix_caching if config.enable_prefix_caching is not None else log.enabled
    # On hybrid models the log tells the attention block that hits come in; the page may show another.
    block = max((b for b in (config.block_size, log.block_size) if b), default=None)
    capacity = config.kv_capacity_tokens or log.kv_capacity_tokens
    checks.append(_setting(enabled, config, log))
    if block or capacity:
        checks.append(_size(block, capacity, max(1, config.engines)))
    merged = CacheConfig(enabled, block, config.num_gpu_blocks, capacity, config.engines)
    return CacheFacts(merged, enabled, block, capacity, tuple(checks))


def _family(now: HitRate) -> Check:
    lifetime = ""
    if now.lifetime and now.lifetime["hit_rate"] is not None:
        lifetime = f"; {now.lifetime['hit_rate']:.1%} since the server started, as context only"
    if now.status in ("no-queries", "disabled", "ok", "renamed") and now.family:
        renamed = " (renamed series)" if not now.family.startswith(("vllm:", "sglang:")) else ""
        return Check("metrics", "ok", f"counters {now.family}{renamed}, in {now.unit}{lifetime}")
    if now.status == "gauge-only":
        return Check("metrics", "warning", now.message, "vLLM 0.9.2 or later counts tokens: pip install -U vllm", 45)
    remedy = "scrape each engine's own /metrics (--metrics-url)" if now.status == "wrong-page" else ""
    return Check("metrics", "failed", now.message, remedy or "do not start it with --disable-log-stats", 50)


def _setting(enabled: bool | None, config: CacheConfig, log: LogFacts) -> Check:
    source = "the metrics page" if config.enable_prefix_caching is not None else "the start-up log"
    if enabled is None:
        return Check("cache-setting", "info", "the server does not tell whether prefix caching is on")
    found = f"enable_prefix_caching={enabled}, says {source}"
    if log.enabled is not None and log.enabled != enabled:
        return Check(
            "cache-setting", "warning", f"{found}; the log says {log.enabled}", "is it the log of this server?", 30
        )
    return Check("cache-setting", "ok" if enabled else "info", found)


def _size(block: int | None, capacity: int | None, engines: int) -> Check:
    parts = [f"block of {block:,} tokens" if block else "", f"KV capacity {capacity:,} tokens" if capacity else ""]
    found = ", ".join(p for p in parts if p) + (f" over {engines} engines" if engines > 1 else "")
    return Check("kv-cache", "ok", found)
