"""Small requests to a server: is it there, what does it serve, can it generate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from prefixkit.probe.proxies import is_loopback


@dataclass(frozen=True, slots=True)
class Http:
    """Requests to one server's root; a proxy from the environment never catches this machine's own address."""

    root: str
    api_key: str | None = field(default=None, repr=False)
    base: str = ""

    def request(self, method: str, url: str, *, timeout_s: float = 5.0, json: Any = None) -> httpx.Response:
        """Send one request; raise httpx.HTTPError when no answer comes."""
        headers = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        trust_env = not is_loopback(urlsplit(url).hostname or "")
        with httpx.Client(trust_env=trust_env, timeout=timeout_s, headers=headers) as client:
            return client.request(method, url, json=json)

    def get(self, path: str, *, timeout_s: float = 5.0) -> httpx.Response | None:
        """Return the answer to a GET below the root, or None when none comes."""
        try:
            return self.request("GET", f"{self.root}{path}", timeout_s=timeout_s)
        except httpx.HTTPError:
            return None

    @property
    def api(self) -> str:
        """The address below which the OpenAI paths are."""
        return self.base or f"{self.root}/v1"

    def models(self) -> list[dict[str, Any]]:
        """Return the entries of /v1/models, none when it cannot be read."""
        try:
            data = self.request("GET", f"{self.api}/models").json()["data"]
            return [entry for entry in data if isinstance(entry, dict)]
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return []

    def version(self) -> str | None:
        """Return what /version says."""
        response = self.get("/version")
        try:
            text = response.json()["version"] if response is not None and response.status_code == 200 else None
        except (ValueError, KeyError, TypeError):
            return None
        return text if isinstance(text, str) else None


def said(response: httpx.Response) -> str:
    """Return the message of an error body in any of its shapes, at most a line."""
    try:
        body = response.json()
    except ValueError:
        body = response.text
    if isinstance(body, dict):
        error = body.get("error", body)
        body = (error.get("message") or error.get("detail") or error) if isinstance(error, dict) else error
    return " ".join(str(body).split())[:200]
