"""`probe --url URL`: time requests to any OpenAI-compatible server."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixkit.errors import ParamsError, ProbeError

if TYPE_CHECKING:
    from prefixkit.probe import Client
    from prefixkit.probe.survey import Survey

HELP = "time to first token of a server, request by request"
PROMPT_CHARS = 1000
Messages = list[dict[str, Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--url", required=True, help="API base, e.g. http://127.0.0.1:8000/v1")
    parser.add_argument("--model", help="model id (default: the first that the server lists)")
    parser.add_argument("--api-key-env", metavar="VAR", help="name of the variable that holds the key")
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt-chars", type=_count, metavar="N", help=f"prompt length, characters ({PROMPT_CHARS})")
    prompt.add_argument("--tokens", type=_count, metavar="N", help="prompt length, tokens (a vLLM server counts them)")
    prompt.add_argument("--messages", metavar="FILE", help="prompts of one's own: JSON messages, or one request a line")
    parser.add_argument("--repeats", type=_count, default=5, metavar="N", help="requests in all (5)")
    parser.add_argument("--fresh", action="store_true", help="a new prompt each time, which no cache can know")
    parser.add_argument("--concurrency", type=_count, default=1, metavar="C", help="requests at once (1)")
    parser.add_argument("--max-tokens", type=_count, default=1, metavar="N", help="output tokens of each answer (1)")


def run(args: argparse.Namespace) -> int:
    """Print times and their summary; 1 when every request failed."""
    from prefixkit.probe import Client

    requests = _given(args.messages) if args.messages else None
    with Client(args.url, args.model or "?", _key(args.api_key_env), key_source=args.api_key_env or "") as client:
        if not args.model:
            client.model = _first_model(client)
        survey = _measure(client, requests or [], args)
    print(json.dumps(survey.record(), ensure_ascii=False) if args.json else survey)
    return 1 if all(p.error for p in survey.probes) else 0


def _measure(client: Client, given: list[Messages], args: argparse.Namespace) -> Survey:
    from prefixkit.probe.calibrate import calibrate
    from prefixkit.probe.load import closed_loop
    from prefixkit.probe.server_times import probe_alone
    from prefixkit.probe.survey import Survey

    requests = _requests(client, given, args)
    busy_s, begun = client.loop.cpu_s(), time.perf_counter()
    if args.concurrency == 1:
        pages = [client.endpoints.metrics] if client.version() else []
        probes = tuple(probe_alone(client, pages, m, max_tokens=args.max_tokens) for m in requests)
    else:
        probes = tuple(t.probe for t in closed_loop(client, requests, args.concurrency, max_tokens=args.max_tokens))
    share = (client.loop.cpu_s() - busy_s) / (time.perf_counter() - begun)
    if all(p.error for p in probes):
        return Survey(probes)
    size = max(len(json.dumps(messages)) for messages in requests)
    try:
        return Survey(probes, calibrate(size, args.concurrency), share)
    except ProbeError as error:
        print(f"prefixkit: no calibration: {error}", file=sys.stderr)
        return Survey(probes, None, share)


def _requests(client: Client, given: list[Messages], args: argparse.Namespace) -> list[Messages]:
    if given:
        cycle = [given[i % len(given)] for i in range(args.repeats)]
        return [_with_head(messages) for messages in cycle] if args.fresh else cycle
    from prefixkit.prompts import Prompts

    def count(text: str) -> int:
        return len(client.tokenize([{"role": "user", "content": text}])) if args.tokens else len(text)

    prompts = Prompts(count, "en", nonce=uuid.uuid4().hex)
    length = args.tokens or args.prompt_chars or PROMPT_CHARS
    try:
        texts = [prompts.prefix(length) for _ in range(args.repeats if args.fresh else 1)]
    except ProbeError as error:
        raise ProbeError(
            f"prompts of {length} tokens need the server to count them: {error}", "use --prompt-chars"
        ) from None
    return [[{"role": "user", "content": texts[i % len(texts)]}] for i in range(args.repeats)]


def _with_head(messages: Messages) -> Messages:
    """Return a chat whose first text starts like no other."""
    first = messages[0]
    content = first.get("content")
    head = f"[{uuid.uuid4().hex}]\n"
    new = head + content if isinstance(content, str) else [{"type": "text", "text": head}, *(content or [])]
    return [{**first, "content": new}, *messages[1:]]


def _given(name: str) -> list[Messages]:
    """Return the chats of a file: a list of messages, an object with `messages`, or one request a line."""
    from prefixkit.workload.requests import read_requests

    path = Path(name)
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ParamsError(f"{name}: cannot be read ({error.strerror})", "give a file of chat messages") from None
    except ValueError:
        value = None
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
    if isinstance(value, list) and value and all(isinstance(m, dict) and "role" in m for m in value):
        return [value]
    found = [request.messages for request in read_requests(path)]
    if not found:
        raise ParamsError(f"{name}: holds no messages", 'give [{"role": "user", "content": "..."}]')
    return found


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if variable not in os.environ:
        raise ParamsError(
            f"the variable {variable} is not set in this process", f"export {variable}=... here, then start again"
        )
    return os.environ[variable]


def _first_model(client: Client) -> str:
    models = client.models()
    if not models:
        raise ProbeError(f"{client.url} lists no models", "name one with --model")
    return str(models[0]["id"])


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
