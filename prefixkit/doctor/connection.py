"""Can the server be reached, does it take the key, does it have the model: before anything is measured."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from prefixkit.doctor.check import Check
from prefixkit.doctor.live import answered
from prefixkit.errors import ProbeError
from prefixkit.probe import Client, Probe
from prefixkit.probe.proxies import is_loopback

_USUAL_PORTS = (8000, 8080, 9000, 30000)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server says of its models; `reached` is False when nothing answered."""

    reached: bool
    models: tuple[str, ...] = ()
    max_model_len: int | None = None
    checks: tuple[Check, ...] = ()


def proxy_check(url: str) -> list[Check]:
    """Warn of a proxy variable that other clients would follow to a local server."""
    host = urlsplit(url).hostname or ""
    proxies = getproxies()
    name = next((n for n in ("http", "https", "all") if proxies.get(n)), None)
    if name is None:
        return []
    if is_loopback(host):
        if proxy_bypass(host):
            return []
        found = f"{name}_proxy is set and no_proxy does not hold {host}: other clients send local requests to the proxy"
        return [Check("proxy", "warning", found, f"export no_proxy={host} (prefixkit itself goes there directly)", 25)]
    if proxy_bypass(host):
        return []
    return [Check("proxy", "info", f"requests to {host} go through {name}_proxy; it may buffer streams")]


def ask_models(client: Client, url: str) -> Served:
    """List the models; what fails says whether it is the connection or the key."""
    try:
        entries = client.models()
    except ProbeError as error:
        return _refused(error, client.url, url)
    ids = tuple(str(e.get("id")) for e in entries if e.get("id"))
    lengths = [e["max_model_len"] for e in entries if isinstance(e.get("max_model_len"), int)]
    return Served(True, ids, min(lengths) if lengths else None, (Check("connection", "ok", f"{client.url} answers"),))


def model_check(wanted: str | None, served: Served) -> tuple[str | None, list[Check]]:
    """Return the model to use and what is to say of it."""
    listed = ", ".join(served.models[:5])
    if wanted is None:
        if not served.models:
            remedy = "give the model's id (--model)"
            return None, [Check("model", "failed", "no model was given and the server lists none", remedy, 92)]
        return served.models[0], [Check("model", "ok", f"{served.models[0]!r}, the first of: {listed}")]
    if served.models and wanted not in served.models:
        found = f"there is no model {wanted!r} at this server; it has {listed}"
        return None, [Check("model", "failed", found, "use one of these ids, or start it with --served-model-name", 92)]
    return wanted, [Check("model", "ok", f"{wanted!r}" + (" is served" if served.models else " (no list to compare)"))]


def chat_checks(probe: Probe, has_key: bool) -> list[Check]:
    """Return what a first tiny chat shows: key, model and form of the answer."""
    if probe.error is None or answered(probe):
        key = "the key was accepted" if has_key else "no key is needed"
        return [Check("key", "ok", key), Check("chat", "ok", "a one-token chat was answered")]
    message, _, remedy = probe.error["message"].partition(" -> ")
    kind = probe.error["kind"]
    name = {"http_401": "key", "http_403": "key", "oauth_required": "key", "http_404_model": "model"}.get(kind, "chat")
    return [Check(name, "failed", message, remedy, 94)]


def _refused(error: ProbeError, base: str, url: str) -> Served:
    answered = re.search(r"answered (\d{3})", error.message)
    if answered is None:
        remedy = "; ".join(t for t in (error.remedy, _other_ports(url)) if t)
        return Served(False, checks=(Check("connection", "failed", error.message, remedy, 99),))
    status = int(answered[1])
    if status in (401, 403):
        found, remedy = error.message, error.remedy
        if os.environ.get("VLLM_API_KEY"):
            found += "; VLLM_API_KEY is set here, so a server started from this shell asks for that key"
        key = Check("key", "failed", found, remedy, 98)
        return Served(True, checks=(Check("connection", "ok", f"{base} answers"), key))
    status_word = "failed" if status >= 500 else "warning"
    found = f"{error.message} (still loading, another program on that port, or a base URL that is not an API's)"
    return Served(True, checks=(Check("connection", status_word, found, error.remedy, 97),))


def _other_ports(url: str) -> str:
    """Name a usual port of this machine on which something does listen."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not is_loopback(host):
        return ""
    for port in _USUAL_PORTS:
        if port == parts.port:
            continue
        try:
            socket.create_connection((host, port), timeout=0.3).close()
        except OSError:
            continue
        return f"something listens on port {port}"
    return ""
