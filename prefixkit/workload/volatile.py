"""Find the text that breaks sharing, and what a prompt looks like with its volatile part moved to the end.

Only the first message is looked at (the system prompt, or the only message): its sentences and lines are counted over
the whole workload. A sentence that comes before one at least twice as frequent is volatile: a date, a name, an id, a
retrieved document. Moving it behind the last user message lets the stable text be shared, and the history with it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

Messages = list[dict[str, Any]]
_SEGMENT = re.compile(r".+?(?:[.!?]+(?=\s)|[。！？]+|\n|$)\s*", re.DOTALL)
_KINDS = (
    ("id", re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=\w*\d)[0-9a-fA-F]{12,}\b")),
    ("time", re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\b")),
    ("date", re.compile(r"\b\d{4}[-/年]\s?\d{1,2}[-/月]\s?\d{1,2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b")),
    ("address", re.compile(r"\b[\w.+-]+@[\w-]+\.\w+\b|https?://\S+")),
    ("number", re.compile(r"\d+(?:[.,]\d+)*")),
)
MOST_SEGMENTS = 500_000


def text_of(message: dict[str, Any]) -> str:
    """Return the text of a message, its parts joined; what is not text counts as nothing."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def segments(text: str) -> list[str]:
    """Cut a text into sentences and lines; joined they are the text."""
    return _SEGMENT.findall(text)


class SegmentCounts:
    """How many requests hold each sentence of a first message; rare ones are forgotten when there are very many."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, messages: Messages) -> None:
        """Count the first message of one request."""
        self._counts.update({hash(s.strip()) for s in segments(text_of(messages[0]))})
        if len(self._counts) > MOST_SEGMENTS:
            self._counts = Counter({k: n for k, n in self._counts.items() if n > 1})

    def count(self, segment: str) -> int:
        """Return how many requests hold this sentence (at least 1)."""
        return max(1, self._counts[hash(segment.strip())])

    def family(self, messages: Messages) -> int:
        """Return a key that requests of one template share: their most frequent sentence, the longest of equals."""
        parts = [s.strip() for s in segments(text_of(messages[0]))] or [""]
        return hash(max(parts, key=lambda s: (self.count(s), len(s), s)))

    def split(self, messages: Messages) -> tuple[str, str]:
        """Return the first message's stable text and its volatile text."""
        parts = segments(text_of(messages[0]))
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


def first_difference(a: Messages, b: Messages) -> tuple[int, int] | None:
    """Return (message, character) where two requests first differ, or None when one continues the other."""
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x["role"] != y["role"]:
            return index, 0
        s, t = text_of(x), text_of(y)
        if s != t:
            short = min(len(s), len(t))
            return index, next((i for i in range(short) if s[i] != t[i]), short)
    return None


def kind_at(text: str, place: int) -> str:
    """Name what stands at a character of a text: id, time, date, address, number or text."""
    window = text[max(0, place - 60) : place + 60]
    at = min(place, 60)
    for name, pattern in _KINDS:
        if any(m.start() <= at <= m.end() for m in pattern.finditer(window)):
            return name
    return "text"
