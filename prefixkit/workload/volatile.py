"""Find the text that breaks sharing, and what a prompt looks like with its volatile part moved to the end.

Only the first message is looked at (the system prompt, or the only message): its sentences and lines are counted over
the whole workload. A sentence that comes before one at least twice as frequent is volatile: a date, a name, an id, a
retrieved document. Moving it behind the last user message lets the stable text be shared, and the history with it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from prefixkit.chat_text import message_text

Messages = list[dict[str, Any]]
_SEGMENT = re.compile(r".+?(?:[.!?]+(?=\s)|[。！？]+|\n|$)\s*", re.DOTALL)
MOST_SEGMENTS = 500_000


def segments(text: str) -> list[str]:
    """Cut a text into sentences and lines; joined they are the text."""
    return _SEGMENT.findall(text)


class SegmentCounts:
    """How many requests hold each sentence of a first message; rare ones are forgotten when there are very many."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, messages: Messages) -> None:
        """Count the first message of one request."""
        self._counts.update({hash(s.strip()) for s in segments(message_text(messages[0]))})
        if len(self._counts) > MOST_SEGMENTS:
            self._counts = Counter({k: n for k, n in self._counts.items() if n > 1})

    def count(self, segment: str) -> int:
        """Return how many requests hold this sentence (at least 1)."""
        return max(1, self._counts[hash(segment.strip())])

    def family(self, messages: Messages) -> int:
        """Return a key that requests of one template share: their most frequent sentence, the longest of equals."""
        parts = [s.strip() for s in segments(message_text(messages[0]))] or [""]
        return hash(max(parts, key=lambda s: (self.count(s), len(s), s)))

    def split(self, messages: Messages) -> tuple[str, str]:
        """Return the first message's stable text and its volatile text."""
        parts = segments(message_text(messages[0]))
        stable: list[str] = []
        volatile: list[str] = []
        later = 0
        for part in reversed(parts):
            count = self.count(part)
            (volatile if part.strip() and count * 2 <= later else stable).append(part)
            later = max(later, count)
        return "".join(reversed(stable)), "".join(reversed(volatile))

    def moved(self, messages: Messages) -> Messages:
        """Return the messages with the volatile text behind the last user message; the same list when there is none."""
        stable, volatile = self.split(messages)
        if not volatile or isinstance(messages[0].get("content"), list):
            return messages
        changed = [dict(m) for m in messages]
        changed[0]["content"] = stable
        users = [i for i, m in enumerate(changed) if m["role"] == "user" and isinstance(m.get("content"), str)]
        if not users:
            return messages
        changed[users[-1]]["content"] += "\n\n" + volatile.strip()
        return changed
