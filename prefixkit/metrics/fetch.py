"""Read metrics pages over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from urllib.parse import urlsplit

import httpx

from prefixkit.metrics.page import MetricsError, UnreachableError, describe_body

_LIMIT_BYTES = 64 * 1024 * 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


def fetch(urls: str | Sequence[str], *, timeout_s: float = 10.0, api_key: str | None = None) -> list[str]:
    """Return the text of each page, in order; raise MetricsError naming the URL, the status and the first bytes."""
    addresses = [urls] if isinstance(urls, str) else list(urls)
    if len(addresses) == 1:
        return [_fetch_one(addresses[0], timeout_s, api_key)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(lambda url: _fetch_one(url, timeout_s, api_key), addresses))


@cache
def _certificates() -> ssl.SSLContext:
    # Reading the trust store takes 20 ms of processor time, which a page between two measured requests must not cost.
    return httpx.create_ssl_context()


def _fetch_one(url: str, timeout_s: float, api_key: str | None) -> str:
    shown = _without_secrets(url)
    headers = {"accept": "text/plain; version=0.0.4", "accept-encoding": "gzip, identity"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    try:
        host = urlsplit(url).hostname
        with httpx.Client(
            timeout=timeout_s, trust_env=host not in _LOOPBACK, follow_redirects=True, verify=_certificates()
        ) as client:
            response = client.get(url, headers=headers)
    except httpx.DecodingError:
        raise MetricsError(f"{shown}: the body is not the compression it claims", "read the engine directly") from None
    except httpx.ConnectError as error:
        raise UnreachableError(
            f"{shown}: nothing answers ({_plain(error)})", "is the server up, and is this its port?"
        ) from None
    except httpx.TimeoutException:
        raise UnreachableError(f"{shown}: no answer within {timeout_s:g} s", "is the server busy or gone?") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise UnreachableError(
            f"{shown}: cannot be read ({_plain(error)})", "give a URL such as http://HOST:8000/metrics"
        ) from None
    return _check(shown, response)


def _check(shown: str, response: httpx.Response) -> str:
    body = response.content
    kind = response.headers.get("content-type", "no content type")
    if response.status_code >= 500:
        raise UnreachableError(
            f"metrics endpoint failed: {shown}: HTTP {response.status_code}, {describe_body(body)}",
            "look in the server's log; with several processes PROMETHEUS_MULTIPROC_DIR must be on a local disk",
        )
    if response.status_code in (401, 403):
        raise UnreachableError(
            f"{shown}: HTTP {response.status_code}, a key is asked for", "scrape the engine, not the gateway"
        )
    if response.status_code != 200:
        raise UnreachableError(
            f"{shown}: HTTP {response.status_code}, {describe_body(body)}",
            "/metrics is at the server's root, not under /v1",
        )
    if len(body) > _LIMIT_BYTES:
        raise MetricsError(f"{shown}: {len(body)} bytes are no metrics page", "give the engine's /metrics")
    start = body[:256].lstrip()
    if body[:2] == b"\x1f\x8b" or start[:1] in (b"<", b"{", b"[") or "html" in kind or "json" in kind:
        raise MetricsError(
            f"{shown}: not a metrics page but {describe_body(body)} ({kind})",
            "give the engine's own /metrics; a proxy or login page may stand before it",
        )
    return body.decode("utf-8", "replace")


def _without_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the URL"
    host = parts.netloc.rsplit("@", 1)[-1]
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else url[:80]


def _plain(error: BaseException) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
