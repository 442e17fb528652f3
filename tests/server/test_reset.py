"""A reset is believed only after a repeated prompt missed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from prefixkit.server.effective import Effective
from prefixkit.server.http import Http
from prefixkit.server.reset import Reset, reset_prefix_cache

ON = Effective(enable_prefix_caching=True, block_size=16)
Answer = tuple[int, str]


@pytest.fixture
def reset() -> Iterator[Callable[..., Reset]]:
    """Return a function that resets a server which answers and behaves as told."""
    servers: list[ThreadingHTTPServer] = []

    def run(answer: Answer, *, clears: bool, counters: bool = True) -> Reset:
        state = {"queries": 0, "hits": 0, "cached": ""}

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def reply(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_GET(self) -> None:
                page = '# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{engine="0"} 1.0\n'
                for name in ("queries", "hits") if counters else ():
                    page += f"# TYPE vllm:prefix_cache_{name} counter\n"
                    page += f'vllm:prefix_cache_{name}_total{{engine="0"}} {state[name]}\n'
                self.reply(200, page)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path.startswith("/reset_prefix_cache"):
                    state["cached"] = "" if clears else state["cached"]
                    self.reply(*answer)
                    return
                prompt = json.loads(body)["prompt"]
                state["queries"] = int(state["queries"]) + 64
                state["hits"] = int(state["hits"]) + (48 if state["cached"] == prompt else 0)
                state["cached"] = prompt
                self.reply(200, '{"choices": [{"text": "x"}]}')

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_address[1]}"
        return reset_prefix_cache(Http(root), [f"{root}/metrics"], "m", ON)

    yield run
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("body", ['{"success": true}', ""])
def test_an_accepted_reset_counts_when_a_repeated_prompt_missed(reset: Callable[..., Reset], body: str) -> None:
    found = reset((200, body), clears=True)
    assert found and found.status == "cleared" and found.hits == 0


@pytest.mark.parametrize("body", ['{"success": true}', ""])
def test_an_accepted_reset_that_did_nothing_is_found_out(reset: Callable[..., Reset], body: str) -> None:
    found = reset((200, body), clears=False)
    assert not found and found.status == "not-cleared" and found.hits == 48


def test_an_admitted_failure_says_that_the_run_is_warm(reset: Callable[..., Reset]) -> None:
    found = reset((200, '{"success": false}'), clears=False)
    assert found.status == "not-cleared" and "NOT cleared" in found.message and "warm" in found.message


def test_an_empty_answer_without_counters_is_unknown(reset: Callable[..., Reset]) -> None:
    assert reset((200, ""), clears=True, counters=False).status == "unknown"


def test_a_server_without_the_path_says_how_to_get_it(reset: Callable[..., Reset]) -> None:
    found = reset((404, "{}"), clears=False)
    assert found.status == "not-exposed" and "VLLM_SERVER_DEV_MODE" in found.message and "restart" in found.message


def test_a_server_error_is_unknown(reset: Callable[..., Reset]) -> None:
    assert reset((500, "oops"), clears=False).status == "unknown"


def test_with_the_cache_off_there_is_nothing_to_clear() -> None:
    assert reset_prefix_cache(Http("http://127.0.0.1:9"), [], "m", Effective(enable_prefix_caching=False))


def test_a_server_that_is_gone_is_unknown() -> None:
    assert reset_prefix_cache(Http("http://127.0.0.1:9"), [], "m", ON).status == "unknown"
