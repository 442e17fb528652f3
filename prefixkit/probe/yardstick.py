"""A chat server of known delay, to measure a client with: run as a script, it prints its port and serves until killed.

It answers every POST with a short stream and states its own delay, from the arrival of the request's last byte to the
first token's leaving, in the last event (`metrics.time_to_first_token_ms`) and, by request id, in a log. Only the
standard library is imported, so that it starts at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TextIO

_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_COMMON = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "yardstick"}
_MODELS = json.dumps({"object": "list", "data": [{"id": "yardstick", "object": "model"}]}).encode()


def _chunk(value: object) -> bytes:
    data = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _delta(finish: str | None, **fields: str) -> bytes:
    return _chunk({**_COMMON, "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


class Yardstick:
    """One thread, one selector: delays are timed, measured and told."""

    def __init__(self, *, delay_ms: float, us_per_kb: float, tokens: int, gap_ms: float, log: TextIO | None) -> None:
        self._delay_ms, self._us_per_kb = delay_ms, us_per_kb
        self._tokens, self._gap_ms = tokens, gap_ms
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        with contextlib.suppress(OSError):
            self._listener.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.port = self._listener.getsockname()[1]
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """Serve for ever."""
        while True:
            wait = None if not self._timers else max(0.0, (self._timers[0][0] - time.perf_counter_ns()) / 1e9)
            for key, _ in self._selector.select(wait):
                key.data()
            while self._timers and self._timers[0][0] <= time.perf_counter_ns():
                heappop(self._timers)[2]()

    def after(self, stamp: int, delay_ms: float, action: Callable[[], None]) -> None:
        """Run `action` `delay_ms` after `stamp`."""
        self._count += 1
        heappush(self._timers, (stamp + int(delay_ms * 1e6), self._count, action))

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = self._listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            visitor = _Visitor(self, sock)
            self._selector.register(sock, selectors.EVENT_READ, visitor.read)

    def drop(self, sock: socket.socket) -> None:
        """Forget a connection."""
        self._selector.unregister(sock)
        sock.close()

    def answer(self, send: Callable[[bytes], None], size: int, request_id: str, arrived: int) -> None:
        """Send the stream of one request whose last byte came at `arrived`."""

        def first() -> None:
            left = time.perf_counter_ns()
            send(_HEAD + _delta(None, role="assistant", content="a"))
            delay_ms = (left - arrived) / 1e6
            if self._log is not None:
                self._log.write(json.dumps({"id": request_id, "bytes": size, "delay_ms": delay_ms}) + "\n")
            if self._tokens > 1 and self._gap_ms:
                for number in range(1, self._tokens):
                    self.after(left, number * self._gap_ms, lambda n=number: rest(delay_ms, n))  # type: ignore[misc]
            else:
                send(_delta(None, content="b") * (self._tokens - 1) + self._last(size, delay_ms))

        def rest(delay_ms: float, number: int) -> None:
            send(_delta(None, content="b") + (self._last(size, delay_ms) if number == self._tokens - 1 else b""))

        self.after(arrived, self._delay_ms + self._us_per_kb * size / 1e6, first)

    def _last(self, size: int, delay_ms: float) -> bytes:
        usage = {
            "prompt_tokens": size // 4,
            "completion_tokens": self._tokens,
            "total_tokens": size // 4 + self._tokens,
        }
        told = {**_COMMON, "choices": [], "usage": usage, "metrics": {"time_to_first_token_ms": delay_ms}}
        return _delta("length") + _chunk(told) + _chunk(b"[DONE]") + b"0\r\n\r\n"


class _Visitor:
    """One connection."""

    def __init__(self, yardstick: Yardstick, sock: socket.socket) -> None:
        self._yardstick, self._sock = yardstick, sock
        self._data = bytearray()
        self._need = 0
        self._get, self._id = False, ""

    def read(self) -> None:
        try:
            data, ancillary, _, _ = self._sock.recvmsg(1 << 20, 64)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._yardstick.drop(self._sock)
            return
        arrived = time.perf_counter_ns()
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(value) == _TIMESPEC.size:
                seconds, nanoseconds = _TIMESPEC.unpack(value)
                arrived -= max(0, time.time_ns() - seconds * 1_000_000_000 - nanoseconds)
        self._data += data
        if not self._need:
            self._head()
        if self._need and len(self._data) >= self._need:
            size = self._need
            self._data.clear()
            self._need = 0
            if self._get:
                self.send(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_MODELS)
                    + _MODELS
                )
            else:
                self._yardstick.answer(self.send, size, self._id, arrived)

    def _head(self) -> None:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = bytes(self._data[:end]).split(b"\r\n")
        fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])
        }
        self._need = end + 4 + int(fields.get(b"content-length", b"0"))
        self._get = lines[0].startswith(b"GET ")
        self._id = fields.get(b"x-request-id", b"").decode("latin-1")

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._sock.sendall(data)


def main(argv: list[str] | None = None) -> None:
    """Print the port and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay-ms", type=float, default=20.0, help="delay of the first token")
    parser.add_argument("--us-per-kb", type=float, default=0.0, help="more delay for each 1000 bytes of request")
    parser.add_argument("--tokens", type=int, default=4, help="tokens of each answer")
    parser.add_argument("--gap-ms", type=float, default=0.0, help="time between tokens; 0 sends the rest at once")
    parser.add_argument("--log", help="file for one JSON line a request")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(args.log, "w", buffering=1)) if args.log else None  # noqa: PTH123
        yardstick = Yardstick(
            delay_ms=args.delay_ms, us_per_kb=args.us_per_kb, tokens=args.tokens, gap_ms=args.gap_ms, log=log
        )
        print(yardstick.port, flush=True)
        yardstick.serve()


if __name__ == "__main__":
    main()
