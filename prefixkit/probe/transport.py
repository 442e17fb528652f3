"""The `openai` SDK's transport: requests leave on open connections, arrivals are stamped before anything is parsed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Protocol

import httpx

from prefixkit.probe.connection import Connection, keep_stamps_on, open_connection
from prefixkit.probe.proxies import proxy_for
from prefixkit.probe.turns import Turns
from prefixkit.probe.wire import WireError

BODY_LIMIT = 64 * 1024 * 1024
_HOP_HEADERS = (b"connection", b"accept-encoding", b"proxy-connection", b"transfer-encoding")


class Tap(Protocol):
    """Receives the stamped body of a successful answer in place of the SDK."""

    async def may_send(self) -> None:
        """Hold the request, ready to leave, until its moment."""

    def on_sent(self, start: int, connect_ms: float) -> None:
        """Take the stamp of the request's first byte and what its connection took to open (0 when it was open)."""

    def on_head(self, status: int, content_type: str, first: int, stamp: int) -> None:
        """Take the arrival of the answer's first bytes and of its whole header."""

    def on_body(self, data: bytes, stamp: int) -> None:
        """Take a piece of the body."""

    def on_end(self, stamp: int) -> None:
        """Take the end of the body."""

    def on_resent(self) -> None:
        """Learn that an idle connection had been closed and the request goes out once more."""


TAP: ContextVar[Tap | None] = ContextVar("TAP", default=None)


class _Exchange:
    """One request and its answer, between a connection and the transport."""

    def __init__(self, tap: Tap | None) -> None:
        self.tap = tap
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = bytearray()
        self.reusable = False
        self.error: WireError | None = None
        self.head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tapped = False
        self.released = False

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], first: int, stamp: int) -> None:
        """Wake the transport."""
        self.status, self.headers = status, headers
        if self.tap is not None:
            kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
            self.tap.on_head(status, kind.decode("latin-1").lower(), first, stamp)
            self.tapped = 200 <= status < 300
        if not self.head.done():
            self.head.set_result(None)

    def on_body(self, data: bytes, stamp: int) -> None:
        """Hand a piece to the tap, or keep it for the SDK."""
        if self.tapped and self.tap is not None:
            self.tap.on_body(data, stamp)
        elif len(self.body) + len(data) > BODY_LIMIT:
            raise WireError("bad_response", "the answer is longer than 64 MiB")
        else:
            self.body += data

    def on_end(self, stamp: int, *, reusable: bool) -> None:
        """Mark the answer complete."""
        self.reusable = reusable
        if self.tap is not None:
            self.tap.on_end(stamp)
        self._finish()

    def failed(self, error: WireError) -> None:
        """Mark the answer broken."""
        self.error = error
        self._finish()

    def release(self, connection: Connection, pool: list[Connection]) -> None:
        """Give the connection back for the next request, or close it where the answer left it unusable; once."""
        if self.released:
            return
        self.released = True
        if self.done.done() and self.reusable and not connection.closed:
            pool.append(connection)
        else:
            connection.close()

    def _finish(self) -> None:
        for future in (self.head, self.done):
            if not future.done():
                future.set_result(None)


class _Body(httpx.AsyncByteStream):
    """What the SDK reads: the whole body at once, or nothing where a tap took it."""

    def __init__(self, exchange: _Exchange, connection: Connection, pool: list[Connection]) -> None:
        self._exchange, self._connection, self._pool = exchange, connection, pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await self._exchange.done
        if self._exchange.error is not None:
            raise self._exchange.error
        yield bytes(self._exchange.body)

    async def aclose(self) -> None:
        self._exchange.release(self._connection, self._pool)


class StampedTransport(httpx.AsyncBaseTransport):
    """Keep-alive HTTP/1.1 with a clock; a `TAP` set in the calling task receives stamps and the streamed body."""

    def __init__(self) -> None:
        self.turns = Turns()
        self._stamps = keep_stamps_on()
        self._context: ssl.SSLContext | None = None
        self._pools: dict[tuple[str, str, int], list[Connection]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request whose body is whole; return when the answer's header is in, or all of it if tapped."""
        body = await request.aread()
        url = request.url
        key = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        pool = self._pools.setdefault(key, [])
        tap = TAP.get()
        if tap is not None:
            await self.turns.take()
            await self.open(url)
            await tap.may_send()
        while True:
            connection = self._idle(pool) or await self._open(*key)
            reused = connection.used
            exchange = _Exchange(tap)
            try:
                await self._send(connection, request, body, exchange)
                await exchange.head
                if exchange.tapped:
                    await exchange.done
                    exchange.release(connection, pool)
                    await self.turns.take(late=True)
            except BaseException:
                if not exchange.released:
                    connection.close()
                raise
            if exchange.error is not None and not exchange.status:
                if reused and exchange.error.kind == "disconnected":
                    if tap is not None:
                        tap.on_resent()
                    continue
                raise exchange.error
            stream = _Body(exchange, connection, pool)
            return httpx.Response(exchange.status, headers=exchange.headers, stream=stream)

    async def open(self, url: httpx.URL) -> None:
        """Make sure that an idle connection to the host of `url` is there."""
        key = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        pool = self._pools.setdefault(key, [])
        pool.append(self._idle(pool) or await self._open(*key))

    async def aclose(self) -> None:
        """Close the idle connections."""
        for pool in self._pools.values():
            while pool:
                pool.pop().close()
        self._stamps.close()

    async def _send(self, connection: Connection, request: httpx.Request, body: bytes, exchange: _Exchange) -> None:
        connect_ms = 0.0 if connection.used else connection.connect_ms
        start = await connection.send(_serialise(request, body, connection), exchange, exchange.failed)
        if exchange.tap is not None:
            exchange.tap.on_sent(start, connect_ms)

    async def _open(self, scheme: str, host: str, port: int) -> Connection:
        context = None
        if scheme == "https":
            context = self._context = self._context or httpx.create_ssl_context()
        return await open_connection(host, port, context=context, proxy=proxy_for(scheme, host))

    @staticmethod
    def _idle(pool: list[Connection]) -> Connection | None:
        while pool:
            connection = pool.pop()
            if not connection.closed:
                return connection
        return None


def _serialise(request: httpx.Request, body: bytes, connection: Connection) -> bytes:
    """Return a request as bytes; the encoding of the answer is pinned to none, since compression holds tokens back."""
    target = request.url.raw_path
    if connection.proxy is not None:
        target = str(request.url).encode("ascii")
    lines = [request.method.encode("ascii") + b" " + target + b" HTTP/1.1"]
    lines += [b"%b: %b" % pair for pair in request.headers.raw if pair[0].lower() not in _HOP_HEADERS]
    lines.append(b"Accept-Encoding: identity")
    if connection.proxy is not None and connection.proxy.authorization:
        lines.append(b"Proxy-Authorization: " + connection.proxy.authorization.encode("ascii"))
    return b"\r\n".join([*lines, b"", body])
