"""From what was seen to causes, each with the number that speaks for it; nothing is blamed without one."""

from __future__ import annotations

from dataclasses import dataclass

from prefixkit.doctor.check import Check
from prefixkit.metrics import HitRate, latency_shift
from prefixkit.metrics.latency import LatencyShift

SHORT_PROMPT_TOKENS = 256
HIGH_RATE = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one prompt sent again: None or empty where it is not known.

    `shared_tokens` is what repeats and `prompt_tokens` the whole prompt; `cached` are the replies' cached_tokens of the
    warm requests; times are TTFTs in ms, a compiling first request left out.
    """

    shared_tokens: int | None = None
    prompt_tokens: int | None = None
    cached: tuple[int | None, ...] = ()
    cold_ms: tuple[float, ...] = ()
    warm_ms: tuple[float, ...] = ()
    counters: HitRate | None = None
    sent_tokens: int | None = None
    enabled: bool | None = None
    block_size: int | None = None
    kv_capacity_tokens: int | None = None
    working_set_tokens: int | None = None
    engines: int = 1
    preemptions: float | None = None
    queue_ms: float | None = None
    decode_share: float | None = None

    @property
    def shift(self) -> LatencyShift:
        """Return cold minus warm."""
        return latency_shift(self.cold_ms, self.warm_ms)

    @property
    def reported(self) -> tuple[int, ...]:
        """Return the cached_tokens that were reported."""
        return tuple(c for c in self.cached if c is not None)

    @property
    def hits_counted(self) -> bool | None:
        """Tell whether the counters saw hits; None where they say nothing."""
        if self.counters is None or self.counters.status not in ("ok", "renamed"):
            return None
        return bool(self.counters.hits)


def explain(e: Evidence) -> list[Check]:
    """Return the causes that the evidence supports, strongest first; an empty list when nothing is wrong or known."""
    found = [
        *_disabled(e),
        *_block(e),
        *_capacity(e),
        *_foreign(e),
    ]
    hit = bool(e.reported and max(e.reported) > 0) or e.hits_counted is True
    missed = e.hits_counted is False or bool(e.reported)
    if not hit and missed:
        found += _no_hits(e, explained=any(c.status == "failed" for c in found))
    elif hit and e.hits_counted is False:
        found.append(
            Check(
                "counters",
                "warning",
                f"replies report up to {max(e.reported):,} cached tokens, the hits counter stood still: it may not be "
                "wired on this build",
                "trust cached_tokens and TTFT here, and report the build",
                80,
            )
        )
    elif hit:
        found += _no_gain(e)
    found += _engines(e)
    return sorted(found, key=lambda c: -c.weight)


def _disabled(e: Evidence) -> list[Check]:
    if e.enabled is not False:
        return []
    return [
        Check(
            "cache-off",
            "failed",
            "the server says enable_prefix_caching=False, whatever flag it was started with",
            "start it with --enable-prefix-caching; if it was, another option or the model switched it off: the "
            "start-up log says which",
            100,
        )
    ]


def _block(e: Evidence) -> list[Check]:
    shared = e.shared_tokens if e.shared_tokens is not None else e.prompt_tokens
    if shared is None or not e.block_size or shared >= e.block_size:
        return []
    return [
        Check(
            "block-size",
            "failed",
            f"shared prefix ({shared:,} tokens) < block ({e.block_size:,} tokens): only whole blocks are reused",
            f"share at least {e.block_size + 1:,} tokens, or start the server with a smaller --block-size",
            95,
        )
    ]


def _capacity(e: Evidence) -> list[Check]:
    capacity = e.kv_capacity_tokens
    needed = e.working_set_tokens or e.prompt_tokens
    if not capacity or not needed or needed <= capacity:
        return []
    return [
        Check(
            "kv-capacity",
            "failed",
            f"working set {needed:,} > KV capacity {capacity:,} tokens: eviction before reuse",
            "more memory for the cache (--gpu-memory-utilization 0.9), fewer distinct prefixes, or sorted requests",
            90,
        )
    ]


def _foreign(e: Evidence) -> list[Check]:
    c = e.counters
    if c is None or c.queries is None or not e.sent_tokens or c.unit != "tokens" or c.status not in ("ok", "renamed"):
        return []
    if c.queries <= 1.02 * e.sent_tokens:
        return []
    cause = f"{e.preemptions:.0f} preemptions: recount" if e.preemptions else "other traffic or a recount"
    return [
        Check(
            "traffic",
            "warning",
            f"the counters saw {c.queries:,} prompt tokens, this test sent {e.sent_tokens:,} ({cause}): the counted "
            "rate is not this test's",
            "repeat it when the server is idle",
            40,
        )
    ]


def _no_hits(e: Evidence, *, explained: bool) -> list[Check]:
    queries = (e.counters.queries if e.counters else None) or e.sent_tokens or 0
    if e.shift.hit_like:
        return [
            Check(
                "counters",
                "warning",
                f"latency behaves like hits ({e.shift}), the counter says none of {queries:,}: it may not be "
                "wired on this build",
                "trust TTFT here; compare with cached_tokens (--enable-prompt-tokens-details)",
                80,
            )
        ]
    if explained or e.shared_tokens is None:
        return []
    flat = f", TTFT {e.shift}" if e.cold_ms and e.warm_ms else ""
    return [
        Check(
            "no-hits",
            "failed",
            f"the prompt is byte-stable and, with {e.shared_tokens:,} tokens, longer than a block "
            f"({e.block_size or 'size unknown'}), but 0 of {queries:,} hit{flat}",
            "a hybrid or recurrent model, or caching switched off by another option: see enable_prefix_caching and the "
            "attention block size in the start-up log",
            70,
        )
    ]


def _no_gain(e: Evidence) -> list[Check]:
    if not e.cold_ms or not e.warm_ms or (e.shift.distinguishable and (e.shift.saved_ms or 0) > 0):
        return []
    if e.counters and e.counters.hit_rate is not None and e.counters.hit_rate < HIGH_RATE and not e.reported:
        return []
    reasons = []
    if e.prompt_tokens is not None and e.prompt_tokens < SHORT_PROMPT_TOKENS:
        reasons.append(f"the prompt is short ({e.prompt_tokens} tokens)")
    if e.queue_ms:
        reasons.append(f"requests queue for {e.queue_ms:.0f} ms")
    if e.decode_share is not None and e.decode_share > HIGH_RATE:
        reasons.append(f"{e.decode_share:.0%} of the time is decoding, which no cache shortens")
    return [
        Check(
            "no-gain",
            "warning",
            f"the cache hits but TTFT does not show it: {e.shift}" + (f"; {', '.join(reasons)}" if reasons else ""),
            "test with a longer shared prefix, one output token and one request at a time",
            60,
        )
    ]


def _engines(e: Evidence) -> list[Check]:
    if e.engines < 2:
        return []
    return [
        Check(
            "engines",
            "warning" if 0 in e.reported or (e.counters and _cold_engine(e.counters)) else "info",
            f"{e.engines} engines: a prefix hits only where it was computed, so the first visit to each misses",
            "route requests with one prefix to one engine (session or prefix affinity)",
            30,
        )
    ]


def _cold_engine(counters: HitRate) -> bool:
    return any(c["queries"] and not c["hits"] for c in counters.per_engine.values())
