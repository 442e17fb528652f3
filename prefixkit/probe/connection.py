"""One TCP or TLS connection whose arrivals are stamped by the kernel where it can, else on the read itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable

from prefixkit.probe.proxies import Proxy
from prefixkit.probe.wire import AnswerParser, Sink, WireError

SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")
_ANCILLARY = socket.CMSG_SPACE(_TIMESPEC.size)
_READ = 262_144
_CONNECT_TIMEOUT_S = 20.0


def keep_stamps_on() -> socket.socket:
    """Return a socket that makes the kernel stamp arrivals as long as it is open.

    The kernel begins to stamp a moment after the first socket asks for it, too late for a process's first answers.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


class Tls:
    """TLS over bytes in memory, so that the socket itself stays ours to stamp."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=host)

    async def handshake(self, sock: socket.socket) -> None:
        """Agree on keys with the other side."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                await loop.sock_sendall(sock, self._out.read())
                data = await loop.sock_recv(sock, _READ)
                if not data:
                    raise ssl.SSLError("the other side closed the connection during the TLS handshake") from None
                self._in.write(data)
            else:
                await loop.sock_sendall(sock, self._out.read())
                return

    def encrypt(self, data: bytes) -> bytes:
        """Return what to send for `data`."""
        view = memoryview(data)
        while view:
            view = view[self._object.write(view) :]
        return self._out.read()

    def decrypt(self, data: bytes) -> tuple[bytes, bool]:
        """Return what `data` holds and whether the other side ended the conversation."""
        self._in.write(data)
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._object.read(_READ)
            except ssl.SSLWantReadError:
                return b"".join(pieces), False
            except ssl.SSLZeroReturnError:
                return b"".join(pieces), True
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)


class Connection:
    """An open connection for one request at a time.

    `connect_ms` is what opening it took; `proxy` is set when the proxy itself must read the request.
    """

    def __init__(self, sock: socket.socket, tls: Tls | None, *, proxy: Proxy | None, connect_ms: float) -> None:
        self.proxy = proxy
        self.connect_ms = connect_ms
        self.used = False
        self.closed = False
        self._sock = sock
        self._tls = tls
        self._parser: AnswerParser | None = None
        self._failed: Callable[[WireError], None] | None = None
        self._last_stamp = 0
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._loop.add_reader(sock.fileno(), self._readable)

    async def send(self, request: bytes, sink: Sink, failed: Callable[[WireError], None]) -> int:
        """Send a serialised request and return the stamp of its first byte; the answer goes to `sink`."""
        if self.closed:
            failed(WireError("disconnected", "the connection was closed before the request was sent"))
            return 0
        data = request if self._tls is None else self._tls.encrypt(request)
        self._parser, self._failed, self.used = AnswerParser(sink), failed, True
        start = self._last_stamp = time.perf_counter_ns()
        try:
            sent = self._sock.send(data)
            if sent < len(data):
                await self._loop.sock_sendall(self._sock, memoryview(data)[sent:])
        except BlockingIOError:
            await self._loop.sock_sendall(self._sock, data)
        except OSError as error:
            self._readable()
            if not self.closed and self._parser is not None:
                self._fail(WireError("disconnected", f"the connection broke while the request was sent ({error})"))
        return start

    def close(self) -> None:
        """Close the connection; an answer under way is given up."""
        if not self.closed:
            self.closed = True
            self._parser = self._failed = None
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()

    def _readable(self) -> None:
        if self.closed:
            return
        try:
            data, ancillary, _, _ = self._sock.recvmsg(_READ, _ANCILLARY)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(WireError("disconnected", f"the connection broke ({error.strerror or error})"))
            return
        stamp = self._stamp(ancillary)
        ended = not data
        try:
            if self._tls is not None and data:
                data, ended = self._tls.decrypt(data)
            if data and self._parser is not None:
                self._parser.feed(data, stamp)
            elif data:
                ended = True
            if self._parser is not None and self._parser.finished:
                self._parser = self._failed = None
            if ended and self._parser is not None:
                parser, self._parser = self._parser, None
                parser.eof(stamp)
        except WireError as error:
            self._fail(error)
        except ssl.SSLError as error:
            self._fail(WireError("tls", f"TLS failed: {error.reason or error}"))
        if ended:
            self.close()

    def _stamp(self, ancillary: list[tuple[int, int, bytes]]) -> int:
        """Return when the bytes just read arrived: the kernel's time where it is plausible, else now."""
        now = time.perf_counter_ns()
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                arrived = now - (time.time_ns() - seconds * 1_000_000_000 - nanoseconds)
                if self._last_stamp <= arrived <= now:
                    now = arrived
        self._last_stamp = now
        return now

    def _fail(self, error: WireError) -> None:
        failed = self._failed
        self.close()
        if failed is not None:
            failed(error)


async def open_connection(
    host: str, port: int, *, context: ssl.SSLContext | None, proxy: Proxy | None = None
) -> Connection:
    """Open a connection, through a proxy where one is named; raise WireError naming what failed."""
    started = time.perf_counter_ns()
    via = (proxy.host, proxy.port) if proxy else (host, port)
    sock = await _connect(*via, proxy)
    try:
        tls = None
        if context is not None:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                if proxy:
                    await _tunnel(sock, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy)
                    proxy = None
                tls = Tls(context, host)
                await tls.handshake(sock)
        return Connection(sock, tls, proxy=proxy, connect_ms=(time.perf_counter_ns() - started) / 1e6)
    except ssl.SSLError as error:
        sock.close()
        raise WireError("tls", f"TLS with {host}:{port} failed: {error.reason or error}") from None
    except TimeoutError:
        sock.close()
        raise WireError("timeout", f"no TLS with {host}:{port} within {_CONNECT_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        sock.close()
        raise WireError("disconnected", f"{via[0]}:{via[1]} closed the connection ({error})") from None
    except BaseException:
        sock.close()
        raise


async def _connect(host: str, port: int, proxy: Proxy | None) -> socket.socket:
    loop = asyncio.get_running_loop()
    kind = "proxy" if proxy else "connection_refused"
    what = f"proxy {host}:{port} (from {proxy.variable})" if proxy else f"{host}:{port}"
    try:
        addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise WireError("proxy" if proxy else "dns", f"the name of {what} is not known ({error.strerror})") from None
    reason = "no address"
    for family, kind_of, protocol, _, address in addresses:
        sock = socket.socket(family, kind_of, protocol)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                await loop.sock_connect(sock, address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except TimeoutError:
            sock.close()
            kind, reason = ("proxy" if proxy else "timeout"), f"no answer within {_CONNECT_TIMEOUT_S:.0f} s"
        except OSError as error:
            sock.close()
            reason = os.strerror(error.errno) if error.errno else str(error)
        except BaseException:
            sock.close()
            raise
    raise WireError(kind, f"cannot connect to {what}: {reason}")


async def _tunnel(sock: socket.socket, target: str, proxy: Proxy) -> None:
    loop = asyncio.get_running_loop()
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    await loop.sock_sendall(sock, "\r\n".join([*lines, "", ""]).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = await loop.sock_recv(sock, 4096)
        if not data or len(answer) > 65_536:
            raise WireError("proxy", f"the proxy {proxy.host}:{proxy.port} ({proxy.variable}) gave no answer")
        answer += data
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if status.split()[1:2] != ["200"]:
        raise WireError("proxy", f"the proxy {proxy.host}:{proxy.port} ({proxy.variable}) refused: {status}")
