"""What a fake vLLM keeps: a reversible tokenizer and a block-hash LRU cache, as in vLLM's V1 engine."""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

SPECIAL = r"<\|im_start\|>|<\|im_end\|>"
# A leading blank belongs to the word after it, so joining two texts can merge pieces, as with a real BPE.
PIECE = re.compile(rf"{SPECIAL}| ?[A-Za-z]{{1,6}}|\d|\s|.", re.DOTALL)


class Tokenizer:
    """Pieces of text to ids and back; ids are given out in order of first sight."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []
        self._lock = threading.Lock()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        with self._lock:
            return [self._id(piece) for piece in PIECE.findall(text)]

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""
        return "".join(self._pieces[i] for i in ids)

    def encode_chat(self, messages: list[dict[str, str]], add_generation_prompt: bool = True) -> list[int]:
        """Return the ids of messages in the ChatML template."""
        text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return self.encode(text + ("<|im_start|>assistant\n" if add_generation_prompt else ""))

    def _id(self, piece: str) -> int:
        if piece not in self._ids:
            self._ids[piece] = len(self._pieces)
            self._pieces.append(piece)
        return self._ids[piece]


@dataclass
class Engine:
    """One engine: its blocks, its counters, and how long it takes to compute a token."""

    block_size: int
    blocks: int
    caching: bool
    queries: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    requests: int = 0
    ttft_s: float = 0.0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    _cached: OrderedDict[int, None] = field(default_factory=OrderedDict)
    _used: Counter[int] = field(default_factory=Counter)
    _private: int = 0
    prefill: threading.Lock = field(default_factory=threading.Lock)
    _lock: threading.Condition = field(default_factory=threading.Condition)

    def reset(self) -> None:
        """Forget every block that no request holds."""
        with self._lock:
            for block in [b for b in self._cached if not self._used[b]]:
                del self._cached[block]

    def account(self, queue_s: float, prefill_s: float, generated: int) -> None:
        """Count one answered request."""
        with self._lock:
            self.requests += 1
            self.queue_s += queue_s
            self.prefill_s += prefill_s
            self.ttft_s += queue_s + prefill_s
            self.generation_tokens += generated

    @contextmanager
    def hold(self, ids: list[int], salt: str | None) -> Iterator[int]:
        """Hold the blocks of a prompt while it is answered; yield how many of its tokens were cached."""
        hashes = self._hashes(ids, salt) if self.caching else []
        needed = -(-(len(ids) + 1) // self.block_size)
        with self._lock:
            self._lock.wait_for(lambda: self._in_use() + needed <= self.blocks - 1, timeout=60)
            most = (len(ids) - 1) // self.block_size
            found = 0
            while found < min(most, len(hashes)) and hashes[found] in self._cached:
                found += 1
            self._take(hashes, needed)
            if self.caching:
                self.queries += len(ids)
                self.hits += found * self.block_size
            self.prompt_tokens += len(ids)
        try:
            yield found * self.block_size
        finally:
            with self._lock:
                self._give(hashes, needed)
                self._lock.notify_all()

    def _hashes(self, ids: list[int], salt: str | None) -> list[int]:
        hashes, parent = [], hash(("root", salt))
        for start in range(0, len(ids) - self.block_size + 1, self.block_size):
            parent = hash((parent, *ids[start : start + self.block_size]))
            hashes.append(parent)
        return hashes

    def _in_use(self) -> int:
        return sum(1 for n in self._used.values() if n) + self._private

    def _take(self, hashes: list[int], needed: int) -> None:
        for block in hashes:
            self._cached.setdefault(block)
            self._used[block] += 1
        self._private += needed - len(hashes)
        free = [b for b in self._cached if not self._used[b]]
        for block in free[: max(0, len(self._cached) + self._private - (self.blocks - 1))]:
            del self._cached[block]

    def _give(self, hashes: list[int], needed: int) -> None:
        self._private -= needed - len(hashes)
        # The tail goes first, so that it is evicted before the head that other prompts may share.
        for block in reversed(hashes):
            self._used[block] -= 1
            if not self._used[block]:
                del self._used[block]
                self._cached.move_to_end(block)
