"""Server-sent events from stamped pieces: an event arrived with the piece that holds its last byte."""

from __future__ import annotations

from collections.abc import Iterator

from prefixkit.probe.wire import WireError

LINE_LIMIT = 16 * 1024 * 1024


class Events:
    """Split a stamped byte stream into the values of its `data:` lines and its comments.

    Every `data:` line is one event: known servers send one JSON object a line, and some leave the blank line between
    events, the blank after the colon, or the last newline away.
    """

    def __init__(self) -> None:
        self._pending = b""
        self._pending_stamp = 0

    def feed(self, data: bytes, stamp: int) -> Iterator[tuple[bytes | None, int]]:
        """Yield value and arrival of each complete `data:` line, and None for each comment (a keep-alive)."""
        first_stamp = stamp
        if self._pending:
            if data.startswith((b"\n", b"\r")):
                first_stamp = self._pending_stamp
            data = self._pending + data
        if b"\r" in data:
            data = data.replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._pending = lines.pop()
        self._pending_stamp = stamp
        if len(self._pending) > LINE_LIMIT:
            raise WireError("bad_response", "an event of the stream is longer than 16 MiB")
        arrived = first_stamp
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip(), arrived
            elif line.startswith(b":"):
                yield None, arrived
            arrived = stamp

    def end(self) -> Iterator[tuple[bytes | None, int]]:
        """Yield what a last line without a newline holds."""
        if self._pending:
            yield from self.feed(b"\n", self._pending_stamp)
