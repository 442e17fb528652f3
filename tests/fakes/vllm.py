"""A fake vLLM server that behaves: blocks, salts, counters and a delay of `alpha + beta * (n - cached)`.

`with FakeVllm() as fake: fake.url` in a test, or `python -m tests.fakes.vllm --port P [vLLM's flags]` as a process.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes import metrics_page
from tests.fakes.kv import Engine, Tokenizer
from tests.fakes.settings import Settings, settings_from

VERSION = "0.32.0"
WORDS = "the dynasty rose and fell while its rivers , walls and old roads remained".split()  # noqa: SIM905


@dataclass
class FakeVllm:
    """A fake server in a thread of this process; `requests` holds every chat request that arrived."""

    settings: Settings = field(default_factory=Settings)
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    faults: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        s = self.settings
        self.tokenizer = Tokenizer()
        self.engines = [Engine(s.block_size, s.blocks, s.caching) for _ in range(s.engines)]
        self.started = time.time()
        self._turn = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", self.port), type("Handler", (_Handler,), {"fake": self}))
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def metrics_url(self) -> str:
        return f"{self.root_url}/metrics"

    def __enter__(self) -> FakeVllm:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def serve_forever(self) -> None:
        self._http.serve_forever()

    def engine_for(self, rank: str | None) -> Engine:
        """Return the engine that a request asks for, else the next in turn."""
        if rank is not None:
            return self.engines[int(rank)]
        with self._lock:
            self._turn += 1
            return self.engines[(self._turn - 1) % len(self.engines)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeVllm

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        s, path = self.fake.settings, self.path.split("?")[0]
        if path == "/v1/models":
            if self._authorised():
                names = s.models or (s.model,)
                data = [{"id": n, "object": "model", "max_model_len": s.max_model_len} for n in names]
                self._json(200, {"object": "list", "data": data})
        elif s.gateway:
            self._error(404, "Not Found", "NotFoundError")
        elif path == "/health":
            self._send(200, b"", "text/plain")
        elif path == "/version":
            self._json(200, {"version": VERSION})
        elif path == "/metrics" and s.metrics:
            page = metrics_page.page(self.fake.engines, s, self.fake.started)
            self._send(200, page.encode(), "text/plain; version=0.0.4; charset=utf-8")
        else:
            self._error(404, "Not Found", "NotFoundError")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except json.JSONDecodeError as error:
            self._error(400, f"JSON decode error: {error}", "BadRequestError")
            return
        if not self._authorised():
            return
        if self.path == "/v1/chat/completions":
            self._complete(body, self._ids(body))
        elif self.fake.settings.gateway:
            self._error(404, "Not Found", "NotFoundError")
        elif self.path == "/v1/completions":
            prompt = body["prompt"]
            self._complete(body, prompt if isinstance(prompt, list) else self._ids(body))
        elif self.path == "/tokenize":
            ids = self._ids(body)
            self._json(200, {"count": len(ids), "max_model_len": self.fake.settings.max_model_len, "tokens": ids})
        elif self.path == "/detokenize":
            self._json(200, {"prompt": self.fake.tokenizer.decode(body["tokens"])})
        elif self.path == "/reset_prefix_cache":
            for engine in self.fake.engines:
                engine.reset()
            self._json(200, {"success": True})
        else:
            self._error(404, "Not Found", "NotFoundError")

    def _authorised(self) -> bool:
        key = self.fake.settings.api_key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self._error(401, "Unauthorized", "AuthenticationError")
        return False

    def _ids(self, body: dict[str, Any]) -> list[int]:
        if "messages" in body:
            return self.fake.tokenizer.encode_chat(body["messages"], body.get("add_generation_prompt", True))
        return self.fake.tokenizer.encode(body["prompt"])

    def _refusal(self, body: dict[str, Any], ids: list[int]) -> tuple[int, str] | None:
        s = self.fake.settings
        if self.fake.faults and (status := self.fake.faults.popleft()):
            return status, "injected fault"
        if body.get("model") not in (s.models or (s.model,)):
            return 404, f"The model `{body.get('model')}` does not exist."
        if s.gateway and (odd := {"cache_salt", "ignore_eos"} & set(body)):
            return 400, f"Unknown parameter: '{sorted(odd)[0]}'."
        if body.get("cache_salt") == "":
            return 400, "Parameter 'cache_salt' must be a non-empty string if provided."
        wanted = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        if len(ids) + wanted > s.max_model_len:
            return 400, f"This model's maximum context length is {s.max_model_len} tokens, not {len(ids)} + {wanted}."
        return None

    def _complete(self, body: dict[str, Any], ids: list[int]) -> None:
        arrived, s = time.perf_counter(), self.fake.settings
        self.fake.requests.append(body)
        self.fake.headers.append(dict(self.headers.items()))
        if refusal := self._refusal(body, ids):
            self._error(*refusal, "BadRequestError")
            return
        wanted = int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)
        count = wanted if body.get("ignore_eos") else min(wanted, 12)
        engine = self.fake.engine_for(self.headers.get("X-data-parallel-rank"))
        with engine.hold(ids, body.get("cache_salt")) as cached:
            with engine.prefill:
                scheduled = time.perf_counter()
                _pause(s.alpha_ms + s.beta_ms * (len(ids) - cached))
                first = time.perf_counter()
            usage: dict[str, Any] = {
                "prompt_tokens": len(ids),
                "completion_tokens": count,
                "total_tokens": len(ids) + count,
            }
            if s.details:
                usage["prompt_tokens_details"] = {"cached_tokens": cached}
            engine.account(scheduled - arrived, first - scheduled, count)
            words = [(" " if i else "") + WORDS[(len(ids) + i) % len(WORDS)] for i in range(count)]
            if body.get("stream"):
                self._stream(body, words, usage, (scheduled - arrived) * 1000, (first - scheduled) * 1000)
            else:
                _pause(s.decode_ms * (count - 1))
                message = {"role": "assistant", "content": "".join(words)}
                choice = {"index": 0, "message": message, "finish_reason": "length" if count == wanted else "stop"}
                self._json(200, self._envelope("chat.completion", body, choices=[choice], usage=usage))

    def _stream(
        self, body: dict[str, Any], words: list[str], usage: dict[str, Any], queue_ms: float, ttft_ms: float
    ) -> None:
        s = self.fake.settings
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if "messages" in body:
            self._event(self._chunk(body, {"role": "assistant", "content": ""}))
        for i, word in enumerate(words):
            if i:
                _pause(s.decode_ms)
            self._event(self._chunk(body, {"content": word}, "length" if i == len(words) - 1 else None))
        if (body.get("stream_options") or {}).get("include_usage"):
            tail = self._envelope("chat.completion.chunk", body, choices=[], usage=usage)
            if s.per_request_metrics and not s.gateway:
                tail["metrics"] = {
                    "time_to_first_token_ms": ttft_ms,
                    "generation_time_ms": s.decode_ms * (len(words) - 1),
                    "queue_time_ms": queue_ms,
                }
            self._event(tail)
        self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, body: dict[str, Any], delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": finish}
        if "messages" not in body:
            return self._envelope("text_completion", body, choices=[{**choice, "text": delta["content"]}])
        return self._envelope("chat.completion.chunk", body, choices=[{**choice, "delta": delta}])

    def _envelope(self, kind: str, body: dict[str, Any], **rest: Any) -> dict[str, Any]:
        return {"id": "chatcmpl-fake", "object": kind, "created": int(time.time()), "model": body["model"], **rest}

    def _event(self, payload: dict[str, Any]) -> None:
        self._write(f"data: {json.dumps(payload)}\n\n".encode())

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _error(self, status: int, message: str, kind: str) -> None:
        self._json(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})

    def _json(self, status: int, payload: dict[str, Any]) -> None:
        self._send(status, json.dumps(payload).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _pause(ms: float) -> None:
    if ms > 0:
        time.sleep(ms / 1000)


def main(argv: list[str]) -> None:
    """Serve until the process is ended, printing the start-up lines that vLLM prints."""
    settings, port = settings_from(argv)
    fake = FakeVllm(settings, port)
    shown = settings.caching if settings.reported_caching is None else settings.reported_caching
    print(f"INFO vLLM API server version {VERSION}, model {settings.model}", flush=True)
    print(f"INFO Initializing a V1 LLM engine (v{VERSION}) with config: enable_prefix_caching={shown}", flush=True)
    print(f"INFO GPU KV cache size: {settings.block_size * settings.blocks:,} tokens", flush=True)
    print("INFO:     Application startup complete.", flush=True)
    fake.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
