"""What a streamed chat completion says, and when: the tap behind one probe."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from prefixkit.probe.sse import Events
from prefixkit.records import now

TEXT_LIMIT = 65_536
BODY_LIMIT = 65_536
_TEXTS = ("reasoning", "reasoning_content", "refusal")
_CALLS = ("tool_calls", "function_call")
_SSE_STARTS = (b"data:", b":", b"event:", b"id:", b"retry:")


class Reading:
    """Stamps (ns) and counts of one answer; memory is bounded whatever the answer's length."""

    def __init__(self, due: int = 0) -> None:
        self.due = due
        self.at = now()
        self.start = self.first_byte = self.head = self.last = self.end = 0
        self.role = self.first_token = self.first_content = self.last_token = self.finish = 0
        self.connect_ms = 0.0
        self.resent = 0
        self.status = 0
        self.content_type = ""
        self.body = b""
        self.deltas = self.keepalives = self.events = 0
        self.done = self.complete = False
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] | None = None
        self.metrics: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.without_choices: dict[str, Any] | None = None
        self.not_json: bytes | None = None
        self._text: list[str] = []
        self._text_left = TEXT_LIMIT
        self._events = Events()
        self._is_sse: bool | None = None

    @property
    def text(self) -> str:
        """The reply's content, cut at a fixed length."""
        return "".join(self._text)

    def left_s(self) -> float:
        """Return how long it is until the request is due."""
        return max(0.0, (self.due - time.perf_counter_ns()) / 1e9)

    async def may_send(self) -> None:
        """Wait until the request is due."""
        if left_s := self.left_s():
            await asyncio.sleep(left_s)
            self.at = now()

    def on_sent(self, start: int, connect_ms: float) -> None:
        """Note when the request's first byte left."""
        self.start, self.connect_ms = start, connect_ms

    def on_resent(self) -> None:
        """Count a request that went out again because an idle connection had been closed."""
        self.resent += 1

    def on_head(self, status: int, content_type: str, first: int, stamp: int) -> None:
        """Note when the answer began."""
        self.status, self.content_type, self.first_byte, self.head = status, content_type, first, stamp

    def on_body(self, data: bytes, stamp: int) -> None:
        """Read the events of a piece."""
        self.last = stamp
        if self._is_sse is None:
            self.body += data
            start = self.body.lstrip()
            if not start:
                return
            self._is_sse = "event-stream" in self.content_type or start.startswith(_SSE_STARTS)
            if not self._is_sse:
                return
            data, self.body = self.body, b""
        if not self._is_sse:
            self.body += data[: BODY_LIMIT - len(self.body)]
            return
        for event, arrived in self._events.feed(data, stamp):
            self._event(event, arrived)

    def on_end(self, stamp: int) -> None:
        """Note the end of the answer; a last event may lack its newline."""
        self.end, self.complete = stamp, True
        for event, arrived in self._events.end():
            self._event(event, arrived)

    def _event(self, value: bytes | None, stamp: int) -> None:
        if value is None:
            if not self.first_token:
                self.keepalives += 1
            return
        if not value:
            return
        if value == b"[DONE]":
            self.done = True
            return
        self.events += 1
        try:
            event = json.loads(value.decode("utf-8", errors="replace"))
        except ValueError:
            event = None
        if isinstance(event, dict):
            self._object(event, stamp)
        elif self.not_json is None:
            self.not_json = value[:200]

    def _object(self, event: dict[str, Any], stamp: int) -> None:
        if isinstance(event.get("usage"), dict):
            self.usage = event["usage"]
        if isinstance(event.get("metrics"), dict):
            self.metrics = event["metrics"]
        choices = event.get("choices")
        if self.error is None and (event.get("error") or event.get("object") == "error"):
            self.error = event
        if not isinstance(choices, list):
            if self.without_choices is None and "usage" not in event:
                self.without_choices = event
            return
        for choice in choices:
            if isinstance(choice, dict):
                self._choice(choice, stamp)

    def _choice(self, choice: dict[str, Any], stamp: int) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = {}
        content = _text(delta.get("content")) or _text(choice.get("text"))
        if content or any(_text(delta.get(name)) for name in _TEXTS) or any(delta.get(name) for name in _CALLS):
            self.deltas += 1
            self.first_token = self.first_token or stamp
            self.last_token = stamp
        elif delta.get("role") and not self.role:
            self.role = stamp
        if content:
            self.first_content = self.first_content or stamp
            if self._text_left > 0:
                self._text.append(content[: self._text_left])
                self._text_left -= len(content)
        if choice.get("finish_reason"):
            self.finish_reason = str(choice["finish_reason"])
            self.finish = self.finish or stamp


def _text(value: object) -> str:
    """Return a delta's text, also where a server sends a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(str(part.get("text") or "") for part in value if isinstance(part, dict))
    return ""
