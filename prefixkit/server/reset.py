"""Empty a server's prefix cache and find out whether that happened: the status alone does not say."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import httpx

from prefixkit.metrics import MetricsError, fetch, hit_rate, totals
from prefixkit.server.effective import Effective
from prefixkit.server.http import Http, said

Status = Literal["cleared", "not-cleared", "unknown", "not-exposed"]
COUNT_DEADLINE_S = 5.0
DEFAULT_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Reset:
    """Whether the cache was emptied; `hits` is what a repeated prompt still hit afterwards (None: not measured)."""

    status: Status
    message: str
    hits: float | None = None

    def __bool__(self) -> bool:
        return self.status == "cleared"


def reset_prefix_cache(http: Http, metrics_urls: Sequence[str], model: str, effective: Effective) -> Reset:
    """Reset, read the body, and confirm by sending a prompt again that was cached before."""
    if effective.enable_prefix_caching is False:
        return Reset("cleared", "prefix caching is off: there is nothing to clear")
    prompt = f"{uuid.uuid4().hex} " + "reset check " * ((effective.block_size or DEFAULT_BLOCK) * 2)
    try:
        _send(http, model, prompt)
        response = http.request("POST", f"{http.root}/reset_prefix_cache", timeout_s=60)
    except httpx.HTTPError as error:
        return Reset("unknown", f"the server did not answer ({type(error).__name__})")
    if response.status_code == 404:
        return Reset(
            "not-exposed",
            "the server has no /reset_prefix_cache: set VLLM_SERVER_DEV_MODE: '1' in server.env, or restart the server",
        )
    if response.status_code != 200:
        return Reset("unknown", f"/reset_prefix_cache: HTTP {response.status_code}: {said(response)}")
    if _success(response) is False:
        return Reset(
            "not-cleared", "the cache was NOT cleared (success: false), what follows is warm: requests hold blocks"
        )
    hits = _hits_of_repeat(http, metrics_urls, model, prompt)
    if hits is None:
        return Reset("unknown", "the reset was accepted, but the counters do not show whether it happened")
    if hits > 0:
        return Reset(
            "not-cleared",
            f"the reset was accepted but a repeated prompt still hit ({hits:.0f}): what follows is warm",
            hits,
        )
    return Reset("cleared", "the cache is empty: a prompt that was cached before missed", hits)


def _send(http: Http, model: str, prompt: str) -> None:
    body = {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0}
    http.request("POST", f"{http.api}/completions", json=body, timeout_s=120)


def _success(response: httpx.Response) -> bool | None:
    """Return what the body says; before 0.26 it is empty."""
    try:
        value = response.json()["success"]
    except (ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, bool) else None


def _hits_of_repeat(http: Http, metrics_urls: Sequence[str], model: str, prompt: str) -> float | None:
    try:
        before = _settled(metrics_urls, http, 0)
        counted = _queries(before)
        if counted is None:
            return None
        _send(http, model, prompt)
        after = _settled(metrics_urls, http, counted + 1)
    except (MetricsError, httpx.HTTPError):
        return None
    found = hit_rate(before, after)
    return found.hits if found.status == "ok" else None


def _settled(urls: Sequence[str], http: Http, queries: float) -> list[str]:
    """Return the metrics once so many queries are counted: counters come one engine step late."""
    end = time.monotonic() + COUNT_DEADLINE_S
    while True:
        pages = fetch(list(urls), api_key=http.api_key)
        if (_queries(pages) or 0) >= queries or time.monotonic() > end:
            return pages
        time.sleep(0.05)


def _queries(pages: Sequence[str]) -> float | None:
    counts = (totals(list(pages), name) for name in ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"))
    return next((count for count in counts if count is not None), None)
