"""What the live test saw, as evidence: the repeated prompt, the forced miss, the block border."""

from __future__ import annotations

from collections.abc import Sequence

from prefixkit.doctor.check import Check
from prefixkit.doctor.live import LiveTest, ttfts
from prefixkit.metrics import expected_hits
from prefixkit.probe import Probe

FULL = 0.9


def live_checks(test: LiveTest) -> list[Check]:
    """Return the checks of a test that has run."""
    return [*_repeat(test), *_control(test), *_border(test), *_usage(test)]


def _repeat(t: LiveTest) -> list[Check]:
    if not t.warm:
        error = next((p.error["message"] for p in t.probes if p.error), "no time was left")
        return [Check("live-repeat", "failed", f"the long prompt could not be sent twice: {error}", "", 50)]
    tokens = t.warm[0].prompt_tokens
    known = [p.cached_tokens for p in t.warm if p.cached_tokens is not None]
    cached = ", ".join(f"{c:,}" for c in known) or "not reported"
    times = f"TTFT {_median(t.cold)} cold, {_median([p for p in t.warm if p.cached_tokens] or t.warm)} repeated"
    found = f"a prompt of {tokens or 'unknown'} tokens, sent {1 + len(t.warm)} times: cached tokens {cached}; {times}"
    counted = t.counters
    if counted is not None and counted.hits is not None:
        found += f"; counters of the whole test {counted.hits:,} of {counted.queries:,} {counted.unit}"
    hit = any(known) or (counted is not None and bool(counted.hits))
    remedy = "" if known else "start vLLM with --enable-prompt-tokens-details to see cached_tokens"
    checks = [Check("live-repeat", "ok" if hit else "info", found, remedy)]
    if len(known) > 1 and known[0] > known[-1] and t.config.engines < 2:
        lost = f"cached tokens fell from {known[0]:,} to {known[-1]:,} between equal requests: other traffic evicts"
        more = "more KV cache (--gpu-memory-utilization 0.9) or less other traffic"
        checks.append(Check("eviction", "warning", lost, more, 55))
    return checks


def _control(t: LiveTest) -> list[Check]:
    controls = t.cold[1:]
    if not controls:
        return []
    how = "with a fresh cache_salt" if t.salted else "as fresh text (the server takes no cache_salt)"
    found = f"the prompt {how}: TTFT {_median(controls)}"
    hits = [p.cached_tokens for p in controls if p.cached_tokens]
    if controls[0].cached_tokens is not None:
        found += f", cached tokens {max(hits, default=0):,}"
    if hits and t.salted:
        return [Check("live-control", "warning", f"{found}: the salt forced no miss", "compare with fresh text", 20)]
    return [Check("live-control", "ok", found)]


def _border(t: LiveTest) -> list[Check]:
    block = t.config.block_size
    pairs = [(p.prompt_tokens, p.cached_tokens) for p in t.border]
    known = [(length, cached) for length, cached in pairs if length is not None and cached is not None]
    if not block or not known:
        return []
    expected = [expected_hits(length, length, block) for length, _ in known]
    cached_only = [cached for _, cached in known]
    seen = ", ".join(f"{length} tokens gave {cached}" for length, cached in known)
    found = f"blocks of {block}: equal prompts of {seen} cached"
    if cached_only == expected:
        return [Check("live-blocks", "ok", f"{found}; as block arithmetic says")]
    found += f"; block arithmetic says {', '.join(map(str, expected))}"
    if not any(cached_only):
        return [Check("live-blocks", "info", found)]
    coarser = "hits come in other units than block_size: a hybrid model, or speculative decoding that drops a block"
    return [Check("live-blocks", "warning", found, coarser, 35)]


def _usage(t: LiveTest) -> list[Check]:
    """Return how full the fullest engine's KV cache is; a page that stands still is no reading."""
    known = [usage for usage in t.usage if usage.fraction is not None]
    if not known:
        return []
    fullest = max(known, key=lambda usage: (usage.stale, usage.fraction or 0.0))
    if fullest.stale:
        return [Check("kv-usage", "warning", fullest.message, "send a request and look again", 15)]
    if (fullest.fraction or 0.0) < FULL:
        return [Check("kv-usage", "ok", f"{fullest.message} by running requests")]
    more = "more KV cache (--gpu-memory-utilization 0.9) or fewer requests at once"
    return [
        Check("kv-usage", "warning", f"{fullest.message} by running requests: cached prefixes are dropped", more, 50)
    ]


def _median(probes: Sequence[Probe]) -> str:
    times = sorted(ttfts(probes))
    return f"{times[len(times) // 2]:,.0f} ms" if times else "unknown"
