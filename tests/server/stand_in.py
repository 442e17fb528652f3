"""A stand-in for vLLM whose start and life go as told: `python stand_in.py MODE [vLLM's flags]`.

Modes (several joined by `+`): `ready` serves; `loading` answers some requests with 503 first; `orphan` starts a
grandchild in a session of its own; `stubborn` ignores SIGTERM; `flood` writes a long log; `sick` never answers a chat
and turns /health to 503 once one was asked for; `keyed` asks for a key; `other` serves another model; `late-bind` fails
after "startup complete"; `die` prints the file STAND_IN_LOG and exits with STAND_IN_EXIT; `silent` waits for the file
STAND_IN_GO, then serves. Files in STAND_IN_DIR tell the test about its processes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODES = set(sys.argv[1].split("+"))
HERE = Path(os.environ.get("STAND_IN_DIR", "."))


class Handler(BaseHTTPRequestHandler):
    model = "fake"
    caching = "True"
    looks = 0
    asked = threading.Event()

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, status: int, body: object = "") -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/health":
            Handler.looks += 1
            sick = "sick" in MODES and self.asked.is_set()
            self.reply(503 if sick or ("loading" in MODES and Handler.looks < 3) else 200)
        elif self.path == "/v1/models":
            key = os.environ.get("VLLM_API_KEY")
            if "keyed" in MODES and (not key or self.headers.get("Authorization") != f"Bearer {key}"):
                self.reply(401, {"error": "Unauthorized"})
            else:
                name = "another" if "other" in MODES else self.model
                self.reply(200, {"data": [{"id": name, "max_model_len": 4096}]})
        elif self.path == "/version":
            self.reply(200, {"version": "0.32.0"})
        elif self.path == "/metrics":
            labels = f'block_size="16",enable_prefix_caching="{self.caching}",num_gpu_blocks="100",engine="0"'
            self.reply(200, f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{labels}}} 1.0\n")
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        first = not self.asked.is_set()
        self.asked.set()
        if "sick" in MODES:
            threading.Event().wait()
        if "loading" in MODES and first:
            self.reply(503, {"error": {"message": "Loading model", "code": 503}})
        else:
            self.reply(200, {"choices": [{"message": {"content": "ready"}}]})


def main() -> None:
    parser = argparse.ArgumentParser(prog="vllm", allow_abbrev=False)
    parser.add_argument("--port", type=int)
    parser.add_argument("--served-model-name", default="fake")
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--block-size", type=int)
    for name in ("--model", "--host", "--config"):
        parser.add_argument(name)
    args = parser.parse_args(sys.argv[2:])
    (HERE / "main.pid").write_text(str(os.getpid()))
    (HERE / "environ.json").write_text(json.dumps(dict(os.environ)))
    if "stubborn" in MODES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "orphan" in MODES:
        child = subprocess.Popen(
            [sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"],
            start_new_session=True,
        )
        (HERE / "orphan.pid").write_text(str(child.pid))
    if "flood" in MODES:
        sys.stderr.write("INFO 01-01 00:00:00 [a.py:1] Starting to load model x\n" * 200_000)
    if "die" in MODES:
        sys.stderr.write(Path(os.environ["STAND_IN_LOG"]).read_text("utf-8"))
        sys.exit(int(os.environ.get("STAND_IN_EXIT", "1")))
    if "silent" in MODES:
        while not Path(os.environ["STAND_IN_GO"]).exists():
            threading.Event().wait(0.05)
    if "late-bind" in MODES:
        print("INFO:     Application startup complete.", flush=True)
        print(f"ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', {args.port})", flush=True)
        sys.exit(1)
    Handler.model, Handler.caching = args.served_model_name, str(args.enable_prefix_caching)
    if "disobey" in MODES:
        Handler.caching = str(not args.enable_prefix_caching)
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.daemon_threads = True
    server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main()
