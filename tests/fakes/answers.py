"""A tiny HTTP server that gives one answer to every GET, fixed or made anew each time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Body = bytes | Callable[[], bytes]
Answer = Callable[..., str]


@contextmanager
def answers() -> Iterator[Answer]:
    """Yield a function `answer(body, status=200, headers=None)` that serves one answer and returns its URL."""
    servers: list[ThreadingHTTPServer] = []

    def answer(body: Body, status: int = 200, headers: dict[str, str] | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = body if isinstance(body, bytes) else body()
                self.send_response(status)
                for name, value in {"content-length": str(len(data)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/metrics"

    yield answer
    for server in servers:
        server.shutdown()
        server.server_close()
