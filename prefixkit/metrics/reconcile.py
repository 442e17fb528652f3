"""Three hit rates of one run that must agree: counters, the replies' cached_tokens, and block arithmetic."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixkit.metrics.cache_config import CacheConfig, config_of
from prefixkit.metrics.latency import latency_shift
from prefixkit.metrics.page import MetricsError, Page, parse
from prefixkit.metrics.result import HitRate
from prefixkit.metrics.totals import sum_of

TOLERANCE = 0.02
_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")


@dataclass(frozen=True, slots=True, repr=False)
class Reconciliation:
    """Three rates as fractions (None = not known); `agree` is None when fewer than two are known.

    `cause`: agree, foreign-traffic, recount, not-wired, uncounted, warm-start, eviction, other-engine, disabled,
    not-reported or unexplained; `reason` says it in a sentence. `sources`: where the server says that prompt tokens
    came from; `balanced` tells whether these add up to its prompt tokens.
    """

    rates: dict[str, float | None]
    agree: bool | None
    cause: str
    reason: str
    sources: dict[str, int] | None = None
    balanced: bool | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {_percent(rate)}" for name, rate in self.rates.items())
        text = f"{shown}: {self.reason}"
        if self.sources is not None:
            text += f"\n  {_sources_text(self.sources, self.balanced)}"
        return text

    def _repr_html_(self) -> str:
        rows = [(name, _percent(rate)) for name, rate in self.rates.items()] + [(self.cause, self.reason)]
        if self.sources is not None:
            rows.append(("prompt tokens by source", _sources_text(self.sources, self.balanced)))
        cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
        return f"<table>{cells}</table>"


def reconcile(
    counters: HitRate,
    probes: Sequence[Mapping[str, Any]],
    predicted_tokens: int | None = None,
    *,
    before: str | Sequence[str] = (),
    after: str | Sequence[str] = (),
    working_set_tokens: int | None = None,
) -> Reconciliation:
    """Compare the three rates of one run and name the reason where they differ by more than two points.

    `probes` are the run's records (superseded ones are left out); `predicted_tokens` is what block arithmetic expects
    to be cached in all of them. `before` and `after` are the metrics pages, for preemptions, KV capacity and sources.
    """
    run = [p for p in probes if not p.get("superseded")]
    # A request that failed after its usage was told has passed through the cache like any other.
    good = [p for p in run if p.get("prompt_tokens")]
    asked = sum(int(p["prompt_tokens"]) for p in good)
    cached = [p.get("cached_tokens") for p in good]
    reported = None if not good or any(c is None for c in cached) else sum(int(c) for c in cached if c is not None)
    rates = {
        "counters": counters.hit_rate if counters.status in ("ok", "renamed") else None,
        "cached_tokens": reported / asked if reported is not None and asked else None,
        "prediction": predicted_tokens / asked if predicted_tokens is not None and asked else None,
    }
    old, new = _pages(before), _pages(after)
    sources, balanced = _by_source(old, new)
    facts = _Facts(counters, good, len(run) - len(good), asked, reported, rates, old, new, working_set_tokens)
    agree, cause, reason = _judge(facts)
    return Reconciliation(rates, agree, cause, reason, sources, balanced)


@dataclass(frozen=True, slots=True)
class _Facts:
    counters: HitRate
    good: Sequence[Mapping[str, Any]]
    failed: int
    asked: int
    reported: int | None
    rates: dict[str, float | None]
    before: list[Page]
    after: list[Page]
    working_set_tokens: int | None

    @property
    def queried_tokens(self) -> int | None:
        """Return the queries in tokens, where their unit is known."""
        c = self.counters
        if c.queries is None or self.rates["counters"] is None:
            return None
        if c.unit == "tokens":
            return c.queries
        return c.queries * c.block_size if c.unit == "blocks" and c.block_size else None


def _judge(f: _Facts) -> tuple[bool | None, str, str]:
    known = {name: rate for name, rate in f.rates.items() if rate is not None}
    traffic = _traffic(f)
    if traffic is not None:
        return False, *traffic
    if len(known) < 2:
        if f.counters.status == "disabled":
            return None, "disabled", "caching is off, so there is no rate to compare"
        why = f"counters: {f.counters.status}" if f.rates["counters"] is None else "replies report no cached_tokens"
        return None, "not-reported", f"fewer than two rates are known ({why}; {_NEEDS_DETAILS})"
    if max(known.values()) - min(known.values()) <= TOLERANCE:
        missing = "" if f.rates["cached_tokens"] is not None else f"; cached_tokens not reported ({_NEEDS_DETAILS})"
        return True, "agree", f"{len(known)} rates agree within {TOLERANCE:.0%}{missing}"
    return False, *_difference(f)


_NEEDS_DETAILS = "vLLM needs --enable-prompt-tokens-details"


def _traffic(f: _Facts) -> tuple[str, str] | None:
    """Return the cause when the counters saw more or fewer tokens than this run sent."""
    queried = f.queried_tokens
    if queried is None or not f.asked or abs(queried - f.asked) <= TOLERANCE * f.asked:
        return None
    seen = f"the counters saw {queried:,} prompt tokens, this run's replies add up to {f.asked:,}"
    if queried < f.asked:
        return "uncounted", f"{seen}: an engine's page is missing, or the counters were read too early"
    preempted = _delta(f.before, f.after, "vllm:num_preemptions")
    if preempted:
        return "recount", f"{seen}, with {preempted:.0f} preemptions: requests were counted again, rate unreliable"
    failed = f" ({f.failed} failed requests may be part of it)" if f.failed else ""
    return "foreign-traffic", f"{seen}: other traffic or a recount{failed}, rate unreliable"


def _difference(f: _Facts) -> tuple[str, str]:
    counted, reported, predicted = (f.rates[n] for n in ("counters", "cached_tokens", "prediction"))
    cold = [p for p in f.good if p.get("phase") == "cold"]
    warm = [p for p in f.good if p.get("phase") == "warm"]
    shift = latency_shift(_ttfts(cold), _ttfts(warm))
    if counted is not None and not f.counters.hits:
        if reported is not None and reported > TOLERANCE:
            return "not-wired", "replies report cached tokens but the hits counter stood still: it is not wired here"
        if shift.hit_like:
            return "not-wired", f"latency behaves like hits ({shift}) but the hits counter stood still: not wired here"
    measured = reported if reported is not None else counted
    if measured is None or predicted is None:
        return (
            "unexplained",
            "counters and cached_tokens differ on the same tokens: read again when idle",
        )
    if measured > predicted:
        surprised = [p for p in cold if p.get("cached_tokens")]
        known = f": {len(surprised)} of {len(cold)} cold requests hit" if surprised else ""
        return "warm-start", f"more hits than this run's own prompts explain{known}; the cache was warm before"
    config = config_of(f.after)
    return _shortfall(f, config)


def _shortfall(f: _Facts, config: CacheConfig) -> tuple[str, str]:
    if config.enable_prefix_caching is False or f.counters.status == "disabled":
        return "disabled", "the server says enable_prefix_caching=False"
    capacity = config.kv_capacity_tokens
    if f.working_set_tokens is not None and capacity is not None and f.working_set_tokens > capacity:
        return "eviction", f"working set {f.working_set_tokens:,} > KV capacity {capacity:,} tokens: eviction"
    if len(f.counters.per_engine) > 1:
        return "other-engine", f"{len(f.counters.per_engine)} engines: a prefix hits only where it was computed"
    preempted = _delta(f.before, f.after, "vllm:num_preemptions")
    if preempted:
        return "eviction", f"{preempted:.0f} preemptions: the KV cache is full, blocks are evicted"
    return "unexplained", "fewer hits than block arithmetic predicts: run the doctor on this server"


def _ttfts(probes: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(p["ttft_ms"]) for p in probes if p.get("ttft_ms") is not None and not p.get("error")]


def _pages(given: str | Sequence[str]) -> list[Page]:
    try:
        return [parse(text) for text in ([given] if isinstance(given, str) else given)]
    except MetricsError:
        return []


def _delta(before: list[Page], after: list[Page], name: str, labels: dict[str, str] | None = None) -> float | None:
    old, new = sum_of(before, name, labels), sum_of(after, name, labels)
    return None if old is None or new is None or new < old else new - old


def _by_source(before: list[Page], after: list[Page]) -> tuple[dict[str, int] | None, bool | None]:
    deltas = {s: _delta(before, after, "vllm:prompt_tokens_by_source", {"source": s}) for s in _SOURCES}
    known = {s: round(d) for s, d in deltas.items() if d is not None}
    total = _delta(before, after, "vllm:prompt_tokens")
    if not known or total is None:
        return None, None
    return {**known, "prompt_tokens": round(total)}, sum(known.values()) == round(total)


def _percent(rate: float | None) -> str:
    return "not known" if rate is None else f"{rate:.1%}"


def _sources_text(sources: dict[str, int], balanced: bool | None) -> str:
    parts = " + ".join(f"{name} {value:,}" for name, value in sources.items() if name != "prompt_tokens")
    return f"{parts} {'=' if balanced else 'is not'} {sources['prompt_tokens']:,} prompt tokens"
