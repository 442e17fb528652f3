"""A short live test: the same long prompt again, a salted control, and three lengths across a block border.

At most 12 chat requests of one output token each; nothing is reset, restarted or evicted on purpose.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prefixkit.doctor.verdict import Evidence
from prefixkit.errors import ProbeError
from prefixkit.metrics import CacheConfig, HitRate, KvUsage, MetricsError, fetch, hit_rate, kv_usage
from prefixkit.probe import Client, Probe

LONG_TOKENS = 1024
BUDGET_S = 16.0
_TEXT = """
river stone market winter garden letter window bridge paper copper valley music tower basket silver forest candle road
summer mirror field wagon island engine orange ladder cloud table horse apple green water light house plant train
"""
Message = dict[str, str]


@dataclass
class LiveTest:
    """The test of one server: what it sent, what came back, and what that shows."""

    client: Client
    metrics_urls: Sequence[str]
    config: CacheConfig
    version: str | None = None
    max_model_len: int | None = None
    clock: Callable[[], float] = time.monotonic
    probes: list[Probe] = field(default_factory=list)
    cold: list[Probe] = field(default_factory=list)
    warm: list[Probe] = field(default_factory=list)
    border: list[Probe] = field(default_factory=list)
    counters: HitRate | None = None
    usage: tuple[KvUsage, ...] = ()
    salted: bool | None = None

    def run(self) -> None:
        """Send the requests; a failed one ends the test and leaves what was learnt so far."""
        self._end = self.clock() + BUDGET_S
        before = self._pages()
        try:
            self._repeat()
            if self.config.block_size and self.config.engines < 2 and self.config.enable_prefix_caching is not False:
                self._border(self.config.block_size)
        except _StopError:
            pass
        if before is not None:
            self.counters = self._counted(before)

    def evidence(self, enabled: bool | None, block: int | None, capacity: int | None) -> Evidence:
        """Return what the repeated prompt shows."""
        tokens = next((p.prompt_tokens for p in self.warm if p.prompt_tokens), None)
        decode = [(p.e2e_ms - p.ttft_ms) / p.e2e_ms for p in self.warm if p.e2e_ms and p.ttft_ms is not None]
        queue = [p.server["queue_ms"] for p in self.warm if p.server and p.server.get("queue_ms", 0) > 50]
        return Evidence(
            shared_tokens=tokens,
            prompt_tokens=tokens,
            cached=tuple(p.cached_tokens for p in self.warm),
            cold_ms=ttfts(self.cold),
            warm_ms=ttfts([p for p in self.warm if p.cached_tokens] or self.warm),
            counters=self.counters,
            sent_tokens=sum(p.prompt_tokens or 0 for p in self.probes) or None,
            enabled=enabled,
            block_size=block,
            kv_capacity_tokens=capacity,
            engines=max(1, self.config.engines),
            queue_ms=max(queue) if queue else None,
            decode_share=max(decode) if decode else None,
        )

    def _repeat(self) -> None:
        size = self._long_size()
        text = self._text(size)
        self.cold.append(self._send(text))
        wanted = 1 + min(3, max(1, self.config.engines))
        for _ in range(wanted):
            self.warm.append(self._send(text))
            if self.warm[-1].cached_tokens and len(self.warm) >= 2:
                break
        for _ in range(2):
            self._control(text, size)

    def _control(self, text: str, size: int) -> None:
        """Force a miss: by a fresh salt, or where the server refuses one by a fresh text."""
        if self.salted is not False:
            probe = self.client.probe(_chat(text), cache_salt=secrets.token_hex(8))
            if answered(probe):
                self.salted = True
                self.probes.append(probe)
                self.cold.append(probe)
                return
            self.salted = False
        self.cold.append(self._send(self._text(size)))

    def _border(self, block: int) -> None:
        words = _words(secrets.token_hex(8), 8)
        try:
            overhead = len(self.client.tokenize(_chat(words))) - 8
        except ProbeError:
            return
        blocks = -(-(overhead + 16) // block)
        size = blocks * block
        if self.max_model_len is not None and size + 4 > self.max_model_len:
            return
        base = secrets.token_hex(8)
        count = size - overhead
        for _ in range(2):
            off = size - len(self.client.tokenize(_chat(_words(base, count))))
            if not off:
                break
            count += off
        for more in range(3):
            text = _words(base, count + more)
            self._send(text)
            self.border.append(self._send(text))

    def _long_size(self) -> int:
        size = max(LONG_TOKENS, 2 * (self.config.block_size or 16) + 64)
        if self.max_model_len is not None:
            size = min(size, self.max_model_len - 64)
        if self.config.kv_capacity_tokens:
            size = min(size, max(64, self.config.kv_capacity_tokens // (4 * max(1, self.config.engines))))
        return max(size, 32)

    def _text(self, tokens: int) -> str:
        return _words(secrets.token_hex(8), max(8, tokens - 48))

    def _send(self, text: str) -> Probe:
        if self.clock() > self._end:
            raise _StopError
        probe = self.client.probe(_chat(text))
        self.probes.append(probe)
        if not answered(probe):
            raise _StopError
        return probe

    def _pages(self) -> list[str] | None:
        try:
            return fetch(self.metrics_urls, timeout_s=5) if self.metrics_urls else None
        except MetricsError:
            return None

    def _counted(self, before: list[str]) -> HitRate | None:
        """Read the counters until they hold every token sent: an engine adds them with its next step."""
        sent = sum(p.prompt_tokens or 0 for p in self.probes)
        until = self.clock() + 2.0
        while True:
            after = self._pages()
            if after is None:
                return None
            rate = hit_rate(before, after, version=self.version)
            if rate.family is not None:
                self.usage = tuple(kv_usage(*pages) for pages in zip(before, after, strict=True))
            if (
                rate.unit != "tokens"
                or (rate.queries or 0) >= sent
                or self.clock() > until
                or rate.status == "disabled"
            ):
                return rate
            time.sleep(0.05)


class _StopError(Exception):
    """The test cannot go on."""


def _chat(text: str) -> list[Message]:
    return [{"role": "user", "content": f"{text}. Which of these words comes first in a dictionary?"}]


def _words(seed: str, count: int) -> str:
    """Return `count` words that are new from the first block on; the same seed continues the same text."""
    chosen, words = random.Random(seed), _TEXT.split()
    return " ".join(chosen.choice(words) for _ in range(max(1, count)))


def answered(probe: Probe) -> bool:
    """Tell whether a request went through; one whose only token ends the text has no TTFT but did."""
    return probe.error is None or (probe.error["kind"] == "no_token" and probe.prompt_tokens is not None)


def ttfts(probes: Sequence[Probe]) -> tuple[float, ...]:
    return tuple(p.ttft_ms for p in probes if p.ttft_ms is not None)
