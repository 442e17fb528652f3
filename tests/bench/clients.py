"""Run one client against a server of known delay and print what it measured.

A script, so that it runs in any environment. Each client keeps its own clock: where it starts and ends its time to
first token is what is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

TOKENS = 4
Measure = Callable[[str, str], Awaitable[float]]


def messages(text: str) -> list[dict[str, str]]:
    """Return the chat that every client sends."""
    return [{"role": "user", "content": text}]


async def openai_sdk(url: str, _concurrency: int, stack: AsyncExitStack) -> Measure:
    """The SDK as its documentation uses it: from the call to the first chunk with content."""
    import openai

    client = await stack.enter_async_context(openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0))

    async def measure(text: str, request_id: str) -> float:
        start, first = time.perf_counter(), None
        stream = await client.chat.completions.create(
            model="yardstick",
            messages=messages(text),
            max_tokens=TOKENS,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers={"x-request-id": request_id},
        )
        async for part in stream:
            if first is None and part.choices and part.choices[0].delta.content:
                first = time.perf_counter()
        return (first - start) * 1000

    return measure


async def httpx_client(url: str, concurrency: int, stack: AsyncExitStack) -> Measure:
    """httpx alone: from the call to the first line with content, stamped before it is parsed."""
    import httpx

    limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    client = await stack.enter_async_context(httpx.AsyncClient(limits=limits, timeout=None))

    async def measure(text: str, request_id: str) -> float:
        body = {"model": "yardstick", "messages": messages(text), "max_tokens": TOKENS, "stream": True}
        start, first = time.perf_counter(), None
        headers = {"x-request-id": request_id}
        async with client.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as response:
            async for line in response.aiter_lines():
                now = time.perf_counter()
                if first is None and line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        first = now
        return (first - start) * 1000

    return measure


async def vllm_function(url: str, concurrency: int, stack: AsyncExitStack) -> Measure:
    """vLLM's own benchmark function, its file loaded alone, with the session that `vllm bench serve` makes."""
    import aiohttp

    site = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages")
    spec = importlib.util.spec_from_file_location("peer", site / "vllm/benchmarks/lib/endpoint_request_func.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["peer"] = module
    spec.loader.exec_module(module)
    connector = aiohttp.TCPConnector(
        limit=concurrency, limit_per_host=concurrency, ttl_dns_cache=300, keepalive_timeout=60, force_close=False
    )
    timeout = aiohttp.ClientTimeout(total=6 * 3600)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))

    async def measure(text: str, request_id: str) -> float:
        asked = module.RequestFuncInput(
            prompt=text,
            api_url=f"{url}/chat/completions",
            prompt_len=len(text) // 4,
            output_len=TOKENS,
            model="yardstick",
            request_id=request_id,
        )
        got = await module.async_request_openai_chat_completions(asked, session)
        if not got.success:
            raise RuntimeError(got.error)
        return got.ttft * 1000

    return measure


PEERS = {"vllm": vllm_function, "openai": openai_sdk, "httpx": httpx_client}


async def run_peer(name: str, url: str, sizes: list[int], concurrency: int, warmups: int) -> list[dict]:
    """Let `concurrency` users take the requests in turn; the first `warmups` are not counted."""
    found = []
    queue = iter(enumerate(sizes))
    async with AsyncExitStack() as stack:
        measure = await PEERS[name](url, concurrency, stack)

        async def user() -> None:
            for number, size in queue:
                ttft_ms = await measure("x" * size, f"r{number}")
                if number >= warmups:
                    found.append({"id": f"r{number}", "ttft_ms": ttft_ms})

        await asyncio.gather(*(user() for _ in range(concurrency)))
    return found


def run_ours(url: str, sizes: list[int], concurrency: int, warmups: int) -> list[dict]:
    """Do the same with prefixkit; the server's delay comes back in its answer, since the client sets no request id."""
    from prefixkit.probe import Client, closed_loop

    requests = [messages("x" * size) for size in sizes]
    with Client(url, "yardstick") as client:
        timed = closed_loop(client, requests, concurrency, max_tokens=TOKENS)[warmups:]
    failed = [t.probe.error for t in timed if t.probe.error]
    if failed:
        raise RuntimeError(failed[0]["message"])
    return [
        {"ttft_ms": t.probe.ttft_ms, "delay_ms": t.probe.server["ttft_ms"], "bytes": t.probe.prompt_tokens * 4}
        for t in timed
    ]


def main() -> None:
    """Print a JSON list of {ttft_ms, id | delay_ms, bytes}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=["prefixkit", *PEERS])
    parser.add_argument("url")
    parser.add_argument(
        "--bytes", type=int, nargs="+", required=True, help="prompt sizes, each asked for `--each` times"
    )
    parser.add_argument("--each", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    args = parser.parse_args()
    warmups = args.concurrency + 5
    sizes = args.bytes * args.each
    random.Random(0).shuffle(sizes)
    sizes = [max(args.bytes)] * warmups + sizes
    if args.client == "prefixkit":
        found = run_ours(args.url, sizes, args.concurrency, warmups)
    else:
        found = asyncio.run(run_peer(args.client, args.url, sizes, args.concurrency, warmups))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
