"""`serve`: the same server as a notebook's, in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from types import FrameType

from prefixkit.errors import ServerError
from prefixkit.params import Params, load_arm
from prefixkit.server import Server, serve

HELP = "start (or attach to) the server of a profile and an arm and keep it until Ctrl-C"
POLL_S = 0.5


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path (default: cpu)")
    parser.add_argument("--arm", choices=("on", "off"), required=True, help="prefix caching on or off")
    parser.add_argument("--port", type=_port, help="port instead of the profile's")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal or the server's death."""
    params = load_arm(args.profile, args.arm)
    if args.port is not None:
        params = _on_port(params, args.port)
    stop = threading.Event()

    def asked(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.is_set():
            return
        stop.set()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        with serve(params, progress=lambda line: print(line, file=sys.stderr, flush=True)) as server:
            _announce(server, as_json=args.json)
            return _watch(server, as_json=args.json)
    except KeyboardInterrupt:
        print("prefixkit: stopped", file=sys.stderr)
        return 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _on_port(params: Params, port: int) -> Params:
    return params.model_copy(update={"server": params.server.model_copy(update={"port": port})})


def _announce(server: Server, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(server.summary(), ensure_ascii=False), flush=True)
    else:
        print(f"{server.url}  model {server.model}  metrics {server.metrics_url}  (Ctrl-C stops it)", flush=True)


def _watch(server: Server, *, as_json: bool) -> int:
    """Return when the server died; with JSON the one object is already out, so the error goes to stderr alone."""
    never = threading.Event()
    while server.alive:
        never.wait(POLL_S)
    try:
        server.check()
    except ServerError as error:
        if not as_json:
            raise
        print(f"prefixkit: {error}", file=sys.stderr)
    return 1
