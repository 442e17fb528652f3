"""A byte-level scripted server: each request gets the next script, whatever it asks for."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUT = None
Step = bytes | Callable[[], object] | None

SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
SSE_HEAD_CLOSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
CERTIFICATE = Path(__file__).with_name("localhost.pem")


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


GOOD = stream(delta(role="assistant", content=""), delta(content="Hi"), delta("stop"), usage(11, 1, 0), DONE)


@dataclass
class Request:
    """What arrived."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split()[1]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WireServer:
    """Plays scripts in order, the last one again and again; a thread a connection.

    A script is a list of byte strings to write and callables to run between them; CUT, or a head with
    `Connection: close`, ends the connection. `by_path` answers some paths apart.
    """

    def __init__(
        self,
        *scripts: list[Step],
        tls: bool = False,
        host: str = "127.0.0.1",
        by_path: dict[str, list[Step]] | None = None,
    ) -> None:
        self.scripts = list(scripts)
        self.requests: list[Request] = []
        self.connections = 0
        self._by_path = by_path or {}
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._context: ssl.SSLContext | None = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(CERTIFICATE)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=512)
        self.port = self._listener.getsockname()[1]
        self.root = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"
        self.url = f"{self.root}/v1"

    def __enter__(self) -> WireServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close every open connection, as a server does with idle ones."""
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

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

    def _serve(self, raw: socket.socket) -> None:
        sock = raw
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._context.wrap_socket(raw, server_side=True)
            reader = sock.makefile("rb")
            while (request := _read(reader)) is not None:
                with self._lock:
                    self.requests.append(request)
                    script = self._by_path.get(request.path)
                    if script is None:
                        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                if not _play(script, sock):
                    break
            reader.close()
        with self._lock:
            self._open.discard(raw)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


def _play(script: list[Step], sock: socket.socket) -> bool:
    closing = False
    for step in script:
        if step is CUT:
            return False
        if isinstance(step, bytes):
            closing = closing or b"connection: close" in step[:300].lower()
            sock.sendall(step)
        else:
            step()
    return not closing


def _read(reader: Any) -> Request | None:
    if reader.peek(1)[:1] == b"\x16":
        return Request("TLS hello /", {}, reader.read1())
    line = reader.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while (header := reader.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        headers[name.decode().lower()] = value.strip().decode("latin-1")
    body = reader.read(int(headers.get("content-length", 0)))
    return Request(line.decode().strip(), headers, body)
