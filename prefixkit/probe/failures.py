"""From a failed answer to a kind, one line that says what is wrong, and the remedy."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from prefixkit.probe.keys import CUT_SHORT
from prefixkit.probe.wire import WireError

_MODEL = re.compile(r"model", re.IGNORECASE)
_ABSENT = re.compile(r"not (exist|found|available|supported)|unknown|no such|invalid model", re.IGNORECASE)
_OAUTH = re.compile(r"oauth ?2?|access token", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Context:
    """What a message may name: never the key itself."""

    url: str
    model: str
    has_key: bool
    key_page: str | None = None
    models: tuple[str, ...] | None = None
    timeout_s: float = 0.0


def parsed(body: bytes) -> Any:
    """Return a body's JSON value, or None."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def is_html(body: bytes, content_type: str = "") -> bool:
    """Say whether an answer is a web page."""
    start = body.lstrip()[:15].lower()
    return "text/html" in content_type or start.startswith((b"<!doctype html", b"<html"))


def server_text(value: Any, limit: int = 300) -> str:
    """Return what a server says in any of the known error shapes."""
    if isinstance(value, dict):
        error = value.get("error")
        if isinstance(error, dict):
            text = str(error.get("message") or error.get("type") or json.dumps(error, ensure_ascii=False))
            code = error.get("code")
            if code not in (None, ""):
                text += f" (code {code})"
        elif error:
            text = str(error)
        else:
            text = str(value.get("message") or value.get("detail") or json.dumps(value, ensure_ascii=False))
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def failure(kind: str, message: str, remedy: str = "") -> dict[str, str]:
    """Return a probe's error."""
    return {"kind": kind, "message": f"{message} -> {remedy}" if remedy else message}


def http_failure(status: int, body: bytes, content_type: str, context: Context) -> dict[str, str]:
    """Explain an answer whose status is not 200."""
    value = parsed(body)
    html = is_html(body, content_type)
    said = "a web page" if html else server_text(value if value is not None else body.decode("utf-8", "replace"))
    tried = f"POST {context.url} answered {status}"
    if status in (401, 403) and _OAUTH.search(said):
        return failure(
            "oauth_required",
            f"{tried}: {said}",
            "this server takes an OAuth access token, which expires, not an API key: use a fresh token as the key, or"
            " the base URL, key and model of a service with API keys (all three must be set)",
        )
    if status == 401:
        return failure("http_401", f"{tried}: {said}", _key_remedy(context))
    if status == 404:
        return _not_found(value, html, said, tried, context)
    if status == 407:
        return failure(
            "proxy", f"{tried}: the proxy wants a user name and password", "put them into the proxy variable"
        )
    if status == 429:
        return failure(
            "http_429", f"{tried}: {said}", "throttled: fewer requests at once, or a quota that has been used up"
        )
    if html:
        return _html(context, status)
    if 300 <= status < 400:
        return failure(f"http_{status}", f"{tried}: a redirect", "give the address that it leads to as the base URL")
    if status >= 500:
        return failure(f"http_{status}", f"{tried}: {said}", "see the server's log; a loading server answers so too")
    return failure(
        f"http_{status}", f"{tried}: {said}", "check model id, roles, max_tokens and the length of the prompt"
    )


def _key_remedy(context: Context) -> str:
    page = f" (keys are made at {context.key_page})" if context.key_page else ""
    if not context.has_key:
        return (
            f"no key was sent: set the key's variable in this very process{page};"
            " a local server started with --api-key wants that key"
        )
    return (
        f"the key was refused: compare it with its page{page}; {CUT_SHORT}; or the base URL belongs to another service"
    )


def _not_found(value: Any, html: bool, said: str, tried: str, context: Context) -> dict[str, str]:
    error = value.get("error") if isinstance(value, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    model_missing = code == "model_not_found" or (not html and _MODEL.search(said) and _ABSENT.search(said))
    ids = ", ".join(context.models or ())
    if model_missing:
        remedy = f"the server has: {ids}" if ids else "list the ids with GET /v1/models"
        return failure("http_404_model", f"{tried}: there is no model {context.model!r} ({said})", remedy)
    if context.models is not None:
        remedy = f"its models are listed ({ids}), so it lacks chat completions: give a server of chat models"
    else:
        remedy = (
            "check the base URL: usually http://HOST:PORT/v1; a vLLM server must be vllm serve or"
            " vllm.entrypoints.openai.api_server, since vllm.entrypoints.api_server has no such path"
        )
    return failure("http_404_path", f"{tried}: no such path ({said})", remedy)


def _html(context: Context, status: int) -> dict[str, str]:
    return failure(
        "html_answer",
        f"POST {context.url} answered {status} with a web page, not an API's answer",
        "the base URL is that of a site: give its API base, usually ending in /v1",
    )


def body_failure(body: bytes, content_type: str, context: Context) -> dict[str, str]:
    """Explain a 200 that is not a stream of events."""
    value = parsed(body)
    if is_html(body, content_type):
        return _html(context, 200)
    if isinstance(value, dict) and isinstance(value.get("choices"), list) and value["choices"]:
        return failure(
            "not_streamed",
            f"POST {context.url} answered with one whole body although a stream was asked for",
            "a proxy or the server ignores stream: true, so time to first token cannot be measured there",
        )
    if isinstance(value, dict):
        return without_choices(value, context)
    start = " ".join(body[:120].decode("utf-8", "replace").split())
    return failure(
        "bad_response", f"POST {context.url} answered 200 with {start!r}", "is this an OpenAI-compatible API?"
    )


def without_choices(value: dict[str, Any], context: Context) -> dict[str, str]:
    """Explain an answer or event that lacks its choices."""
    keys = ", ".join(value) or "none"
    return failure(
        "no_choices",
        f"POST {context.url} gave a response without choices (keys: {keys}): {server_text(value)}",
        "an error taken for an answer: check model id, role, max_tokens and key",
    )


def wire_failure(error: WireError, context: Context) -> dict[str, str]:
    """Explain a request that got no complete HTTP answer."""
    remedies = {
        "connection_refused": "nothing listens there: is the server up (still loading weights?), and is it this port?",
        "timeout": "is the server up, and is a firewall or a proxy between?",
        "dns": "check the host name in the base URL",
        "proxy": "set no_proxy for this host, or mend the proxy variable",
        "tls": "https on a plain http port, or a certificate that is not trusted (SSL_CERT_FILE names one's own)",
        "disconnected": "the server closed the connection: see its log, it may have died",
        "truncated": "the stream was cut off: see the server's log, or a proxy's time limit",
        "bad_response": "is this an OpenAI-compatible HTTP API, and http and https not mixed up?",
    }
    return failure(error.kind, f"POST {context.url}: {error}", remedies.get(error.kind, ""))
