"""HTTP/1.1 answers, byte by byte: every piece keeps the time at which it arrived."""

from __future__ import annotations

import zlib
from typing import Any, Protocol

import httpx

HEAD_LIMIT = 65_536


class WireError(httpx.RequestError):
    """A connection or an answer that failed below HTTP; `kind` is that of the probe's error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Sink(Protocol):
    """Receives an answer; every stamp is in nanoseconds of `time.perf_counter_ns`."""

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], first: int, stamp: int) -> None:
        """Take status and headers; `first` is the arrival of the first bytes, `stamp` that of the last header."""

    def on_body(self, data: bytes, stamp: int) -> None:
        """Take a piece of the body, framing removed."""

    def on_end(self, stamp: int, *, reusable: bool) -> None:
        """Take the end of the body."""


class AnswerParser:
    """Split one HTTP/1.1 answer into head and body pieces and hand them to a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pending = b""
        self._step = self._head
        self._left = 0
        self._reusable = True
        self._inflate: Any = None
        self._first = 0
        self.finished = False

    def feed(self, data: bytes, stamp: int) -> None:
        """Take bytes that arrived at `stamp`; raise WireError when they are not HTTP/1.1."""
        self._first = self._first or stamp
        if self._pending:
            data = self._pending + data
            self._pending = b""
        while data and not self.finished:
            rest = self._step(data, stamp)
            if rest is None:
                self._pending = data
                if len(data) > HEAD_LIMIT:
                    raise WireError("bad_response", "the answer's header is longer than 64 KiB: not an HTTP API")
                return
            data = rest
        if data and self.finished:
            self._reusable = False

    def eof(self, stamp: int) -> None:
        """Take the end of the connection; raise WireError when the answer was not complete."""
        if self.finished:
            return
        if self._step == self._until_close:
            self._reusable = False
            self._end(stamp)
            return
        if self._step == self._head:
            raise WireError("disconnected", "the server closed the connection without an answer")
        raise WireError("truncated", "the connection was closed in the middle of the answer")

    def _head(self, data: bytes, stamp: int) -> bytes | None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if not b"HTTP/".startswith(data[:5]):
                raise WireError("bad_response", f"the answer is not HTTP: {data[:40]!r}")
            return None
        lines = data[:end].split(b"\r\n")
        try:
            version, status_text = lines[0].split(None, 2)[:2]
            status = int(status_text)
        except ValueError:
            raise WireError("bad_response", f"the answer is not HTTP: {lines[0][:40]!r}") from None
        if not version.startswith(b"HTTP/1."):
            raise WireError("bad_response", f"the answer is not HTTP/1.1: {lines[0][:40]!r}")
        rest = data[end + 4 :]
        if 100 <= status < 200:
            return rest
        headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines[1:])]
        self._frame(version, status, {name.lower(): value.lower() for name, value in headers})
        self._sink.on_head(status, headers, self._first, stamp)
        if self._step == self._sized and self._left == 0:
            self._end(stamp)
        return rest

    def _frame(self, version: bytes, status: int, fields: dict[bytes, bytes]) -> None:
        connection = fields.get(b"connection", b"")
        self._reusable = b"close" not in connection and (version != b"HTTP/1.0" or b"keep-alive" in connection)
        coding = fields.get(b"content-encoding", b"identity")
        if coding in (b"gzip", b"deflate"):
            self._inflate = zlib.decompressobj(47)
        elif coding not in (b"identity", b""):
            raise WireError("bad_response", f"the answer is compressed with {coding.decode()} though not asked for")
        if status in (204, 304):
            self._left, self._step = 0, self._sized
        elif b"chunked" in fields.get(b"transfer-encoding", b""):
            self._step = self._chunk_size
        elif b"content-length" in fields:
            try:
                self._left = int(fields[b"content-length"])
            except ValueError:
                raise WireError("bad_response", "the answer's content-length is not a number") from None
            self._step = self._sized
        else:
            self._step = self._until_close

    def _sized(self, data: bytes, stamp: int) -> bytes:
        piece = data[: self._left]
        self._left -= len(piece)
        self._body(piece, stamp)
        if not self._left:
            self._end(stamp)
        return data[len(piece) :]

    def _until_close(self, data: bytes, stamp: int) -> bytes:
        self._body(data, stamp)
        return b""

    def _chunk_size(self, data: bytes, stamp: int) -> bytes | None:  # noqa: ARG002
        end = data.find(b"\r\n")
        if end < 0:
            return None
        try:
            self._left = int(data[:end].split(b";")[0], 16)
        except ValueError:
            raise WireError("bad_response", f"a chunk size is not a number: {data[:end][:40]!r}") from None
        self._step = self._chunk if self._left else self._trailer
        return data[end + 2 :]

    def _chunk(self, data: bytes, stamp: int) -> bytes:
        piece = data[: self._left]
        self._left -= len(piece)
        self._body(piece, stamp)
        if not self._left:
            self._step = self._chunk_end
        return data[len(piece) :]

    def _chunk_end(self, data: bytes, stamp: int) -> bytes | None:  # noqa: ARG002
        if len(data) < 2:
            return None
        if not data.startswith(b"\r\n"):
            raise WireError("bad_response", "a chunk is longer than its size says")
        self._step = self._chunk_size
        return data[2:]

    def _trailer(self, data: bytes, stamp: int) -> bytes | None:
        end = data.find(b"\r\n")
        if end < 0:
            return None
        if end == 0:
            self._end(stamp)
        return data[end + 2 :]

    def _body(self, data: bytes, stamp: int) -> None:
        if self._inflate is not None:
            try:
                data = self._inflate.decompress(data)
            except zlib.error:
                raise WireError("bad_response", "the answer's compressed body is damaged") from None
        if data:
            self._sink.on_body(data, stamp)

    def _end(self, stamp: int) -> None:
        self.finished = True
        self._sink.on_end(stamp, reusable=self._reusable)
