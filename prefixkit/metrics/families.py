"""Which series hold the prefix cache's queries and hits: by engine, by version, and under other names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from prefixkit.metrics.page import Page

LOOKED_FOR = (
    "vllm:prefix_cache_queries_total/_hits_total",
    "vllm:gpu_prefix_cache_queries_total/_hits_total",
    "vllm:gpu_prefix_cache_hit_rate, vllm:cpu_prefix_cache_hit_rate",
    "sglang:prompt_tokens_total with sglang:cached_tokens_total",
)

_COUNTER = re.compile(
    r"(?P<family>(?P<prefix>\w*?)vllm(?P<colon>[:_])(?P<gpu>gpu_)?prefix_cache)_(?P<what>queries|hits)(?P<total>_total)?"
)
_EXTERNAL = re.compile(r"(?P<family>\w*?vllm[:_]external_prefix_cache)_(?P<what>queries|hits)(?P<total>_total)?")
_GAUGE = re.compile(r"(?:\w*?vllm[:_](?:gpu|cpu)_prefix_cache_hit_rate|sglang:cache_hit_rate)")


@dataclass(frozen=True, slots=True)
class Family:
    """A pair of counters; `unit` is "tokens", "blocks" or "unknown"."""

    name: str
    queries: str
    hits: str
    unit: str
    renamed: bool = False
    deprecated: bool = False
    lazy: bool = False
    """The series of an engine appear with its first count, so hits that are not there yet are 0 (SGLang, Ray)."""

    def in_page(self, page: Page) -> bool:
        """Tell whether the page holds these counters."""
        return self.queries in page.series and (self.hits in page.series or (self.lazy and not page.cut_off))


def find_family(page: Page, version: str | None = None) -> Family | None:
    """Return the counters to read: the current name before the deprecated one, vLLM's own before renamed ones."""
    families = _pairs(page, _COUNTER, version)
    if families:
        return min(families, key=lambda f: (f.renamed, f.deprecated))
    sglang = Family(
        "sglang:cached_tokens", "sglang:prompt_tokens_total", "sglang:cached_tokens_total", "tokens", lazy=True
    )
    announced = sglang.hits in page.series or sglang.hits in page.comments
    return sglang if announced and sglang.in_page(page) else None


def find_external(page: Page) -> Family | None:
    """Return the counters of a KV connector, which count what the local cache missed; never added to the local ones."""
    families = _pairs(page, _EXTERNAL, None)
    return families[0] if families else None


def half_family(page: Page) -> str | None:
    """Return the one counter of a pair that stands alone, or None: the sign of a page that is not whole."""
    found = [name for name in page.series if _COUNTER.fullmatch(name)]
    return found[0] if found and not _pairs(page, _COUNTER, None) else None


def gauges(page: Page) -> list[str]:
    """Return the names of hit-rate gauges (vLLM's V0 engine, SGLang)."""
    return page.names(lambda name: _GAUGE.fullmatch(name) is not None)


def prefix_like(page: Page) -> list[str]:
    """Return series that speak of a prefix or a cache hit, for the message when nothing known is there."""
    return page.names(lambda name: "prefix" in name.lower() or "cache_hit" in name.lower())


def _pairs(page: Page, pattern: re.Pattern[str], version: str | None) -> list[Family]:
    found: dict[str, dict[str, str]] = {}
    matches: dict[str, re.Match[str]] = {}
    for name in page.series:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        pair = found.setdefault(match["family"], {})
        # Ray exports a counter twice: as a gauge without the suffix and as a counter with it.
        if match["total"] or match["what"] not in pair:
            pair[match["what"]] = name
        matches[match["family"]] = match
    families = []
    for name, pair in found.items():
        if len(pair) == 2:
            groups = matches[name].groupdict()
            gpu = bool(groups.get("gpu"))
            renamed = not name.startswith("vllm:")
            unit = _unit(page, pair["queries"], gpu, version)
            families.append(Family(name, pair["queries"], pair["hits"], unit, renamed, gpu, lazy=renamed))
    return families


def _unit(page: Page, queries: str, gpu: bool, version: str | None) -> str:
    if not gpu:
        return "tokens"
    text = page.help(queries).lower()
    if "block" in text:
        return "blocks"
    if "token" in text:
        return "tokens"
    numbers = re.match(r"v?(\d+)\.(\d+)", version or "")
    if numbers:
        return "blocks" if (int(numbers[1]), int(numbers[2])) < (0, 9) else "tokens"
    return "unknown"
