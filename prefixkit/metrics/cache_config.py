"""The cache as the server configured it: vllm:cache_config_info."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prefixkit.metrics.page import Page, parse


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """What `vllm:cache_config_info` says; None where it does not, or where engines differ.

    `num_gpu_blocks` and `kv_capacity_tokens` are sums over engines; a prompt can only use one engine's share.
    """

    enable_prefix_caching: bool | None = None
    block_size: int | None = None
    num_gpu_blocks: int | None = None
    kv_capacity_tokens: int | None = None
    engines: int = 0


def cache_config(pages: str | bytes | Sequence[str | bytes]) -> CacheConfig:
    """Return the cache settings in force; raise MetricsError for a body that is no metrics page."""
    texts = [pages] if isinstance(pages, str | bytes) else pages
    return config_of([parse(text) for text in texts])


def config_of(pages: Sequence[Page]) -> CacheConfig:
    """Return the cache settings that parsed pages report."""
    by_page = [_labels(page) for page in pages]
    labels = [one for found in by_page for one in found]
    if not labels:
        return CacheConfig()
    flags = {{"true": True, "false": False}.get(lab.get("enable_prefix_caching", "").lower()) for lab in labels}
    sizes = {_number(lab.get("block_size")) for lab in labels}
    flag = flags.pop() if len(flags) == 1 else None
    size = sizes.pop() if len(sizes) == 1 else None
    totals = [_blocks(found) for found in by_page if found]
    total = sum(t for t in totals if t is not None) if all(t is not None for t in totals) else None
    capacity = size * total if size is not None and total is not None else None
    return CacheConfig(flag, size, total, capacity, len(labels))


def _labels(page: Page) -> list[dict[str, str]]:
    names = page.names(lambda n: n.endswith(("vllm:cache_config_info", "vllm_cache_config_info")))
    return [sample.labels for name in names for sample in page.samples(name) if sample.value == 1]


def _blocks(engines: list[dict[str, str]]) -> int | None:
    """Return one page's blocks: vLLM's front end adds up its engines and shows the sum on each one's line."""
    blocks = [_number(labels.get("num_gpu_blocks")) for labels in engines]
    if len(set(blocks)) == 1:
        return blocks[0]
    return None if None in blocks else sum(b for b in blocks if b is not None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and int(text) > 0 else None
