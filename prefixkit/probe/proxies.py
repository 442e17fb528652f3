"""Which requests go through a proxy from the environment: never one to this machine."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from prefixkit.errors import ProbeError


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy; `authorization` is a header value or empty."""

    host: str
    port: int
    variable: str
    authorization: str = field(default="", repr=False)


def is_loopback(host: str) -> bool:
    """Say whether a host name or address is this machine."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def proxy_for(scheme: str, host: str) -> Proxy | None:
    """Return the proxy that the environment names for a host, or None for a direct connection."""
    if is_loopback(host):
        return None
    proxies = getproxies()
    name = scheme if scheme in proxies else "all"
    url = proxies.get(name)
    if not url or proxy_bypass(host):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ProbeError(
            f"{name}_proxy names a {parts.scheme} proxy, which is not supported (only http:// proxies are)",
            f"set {name}_proxy to an http:// proxy, or name {host} in no_proxy",
        )
    authorization = ""
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode()
    return Proxy(parts.hostname, parts.port or 80, f"{name}_proxy", authorization)
