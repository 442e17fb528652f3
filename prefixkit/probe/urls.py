"""One spelling for every way in which people write the address of an OpenAI-compatible server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from prefixkit.errors import ProbeError

_VERSION = re.compile(r"v[1-9]((alpha|beta)\d*)?")
_VERSIONLESS_GATEWAYS = ("deployments", "openapi", "openai")
_LEAVES = (["chat", "completions"], ["completions"], ["models"], ["metrics"], ["health"], ["version"])


class BadUrlError(ProbeError):
    """An address that cannot be an API base; found before anything is sent."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Addresses of one server: API base (`.../v1`), root, and metrics page."""

    base: str
    root: str
    metrics: str


def endpoints(url: str) -> Endpoints:
    """Return the addresses behind `url`, whichever of its spellings was given.

    Path segments are compared whole: `/v1` is the version, `/av1` and `/v10` are not. A path without a version gets
    `/v1`, except below gateways that have none (Azure deployments, Vertex `openapi`).
    """
    parts = _checked(url)
    segments = [s for s in parts.path.split("/") if s]
    for leaf in _LEAVES:
        if segments[-len(leaf) :] == leaf:
            segments = segments[: -len(leaf)]
            break
    while segments[-2:] == ["v1", "v1"]:
        segments.pop()
    versioned = any(_VERSION.fullmatch(s) for s in segments)
    if not versioned and not any(s in _VERSIONLESS_GATEWAYS for s in segments):
        segments.append("v1")
    origin = f"{parts.scheme.lower()}://{parts.netloc}"
    base = "/".join([origin, *segments])
    root = "/".join([origin, *(segments[:-1] if _VERSION.fullmatch(segments[-1]) else segments)])
    return Endpoints(base, root, f"{root}/metrics")


def _checked(url: str) -> SplitResult:
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadUrlError(f"{url!r} is not a URL ({error})", "give http://HOST:PORT or https://HOST/PATH") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise BadUrlError(f"{url!r} is not an http or https URL", f"give http://{url.split('://')[-1] or 'HOST:PORT'}")
    if parts.username is not None:
        raise BadUrlError(
            f"the URL of host {host} holds a user name or password",
            "put the key into a variable and name that variable",
        )
    clean = f"{parts.scheme}://{parts.netloc}{parts.path}"
    if parts.query:
        raise BadUrlError(
            f"the URL has a query (?{parts.query}): that is the link of a web page, not an API base",
            f"give the base address alone, e.g. {clean}",
        )
    if parts.fragment or url.endswith(("#", "?")):
        raise BadUrlError(
            f"the URL has a fragment (#{parts.fragment}): that is the link of a web page, not an API base",
            f"give the base address alone, e.g. {clean}",
        )
    return parts
