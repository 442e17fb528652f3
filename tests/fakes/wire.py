"""A byte-level scripted server: each request gets the next script, whatever it asks for."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Step = bytes | Callable[[], object]

SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
SSE_HEAD_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """Return one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(value: object) -> bytes:
    """Return one server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    """Return the event of one delta."""
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(prompt: int = 11, completion: int = 2, cached: int | None = None, **extra: Any) -> bytes:
    """Return the last event, which holds no choice."""
    counts: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return event({"choices": [], "usage": counts, **extra})


def stream(*pieces: Step) -> list[Step]:
    """Return the script of a chunked event stream; callables run between pieces."""
    return [SSE_HEAD, *(chunk(p) if isinstance(p, bytes) else p for p in pieces), END]


def answer(status: int, body: object, content_type: str = "application/json", *headers: str) -> list[Step]:
    """Return the script of one whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"Content-Length: {len(data)}", *headers]
    return ["\r\n".join([*lines, "", ""]).encode() + data]


@dataclass
class Request:
    """What arrived."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class WireServer:
    """Plays scripts in order (the last one again and again); a thread a connection.

    A script is a list of byte strings to write and of callables to run between them. `CLOSE` ends the connection.
    """

    scripts: list[list[Step]]
    context: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> WireServer:
        self._lock = threading.Lock()
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, 0), family=family, backlog=512)
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        with self._lock:
            for sock in self._open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    @property
    def url(self) -> str:
        scheme = "https" if self.context else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/v1"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context is not None:
                sock = self.context.wrap_socket(sock, server_side=True)
            reader = sock.makefile("rb")
            while (request := _read(reader)) is not None:
                with self._lock:
                    self.requests.append(request)
                    script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                if not _play(script, sock):
                    return
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()


def CLOSE() -> object:  # noqa: N802
    """End the connection where it stands."""
    raise ConnectionAbortedError


def _play(script: Iterable[Step], sock: socket.socket) -> bool:
    for step in script:
        if isinstance(step, bytes):
            sock.sendall(step)
            if step == SSE_HEAD_CLOSE:
                closing = True
        else:
            step()
    return b"connection: close" not in (script[0] if isinstance(script, list) else b"").lower()


def _read(reader: Any) -> Request | None:
    line = reader.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while (header := reader.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        headers[name.decode().lower()] = value.strip().decode("latin-1")
    body = reader.read(int(headers.get("content-length", 0)))
    return Request(line.decode().strip(), headers, body)
