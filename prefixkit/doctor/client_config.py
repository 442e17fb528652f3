"""Read a client's configuration (Claude Code, Cline, Codex): which of URL, key and model is missing or mixed up."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prefixkit.doctor.check import Check
from prefixkit.errors import ParamsError, PrefixkitError
from prefixkit.probe.keys import clean_key
from prefixkit.probe.proxies import is_loopback

_URL = re.compile(r"(?:anthropic|openai|custom|litellm|ollama|lmstudio)?(?:api)?(?:base|endpoint)(?:url)?")
_KEY = re.compile(r"(?:anthropic|openai|custom|litellm)?(?:apikey|authtoken|apitoken|bearertoken)")
_MODEL = re.compile(r"(?:anthropic|openai|planmode|actmode|act|plan)*(?:default|api)?model(?:id|name)?")
_OAUTH_KEYS = ("accesstoken", "refreshtoken", "idtoken", "claudeaioauth", "oauthaccount")
_OAUTH_VALUES = ("chatgpt", "claudeai", "oauth", "openai-codex", "claude-code")
_CLOUD_KEY = re.compile(r"sk-(?:ant|proj|or|svcacct)-|AIza|gsk_|xai-|pplx-|sk-\S{18,}")
_PLACEHOLDERS = ("empty", "none", "dummy", "token-abc123", "not-needed", "no-key", "local", "ollama", "xxx", "changeme")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What a client would use, without the key itself; `oauth_chosen` when a setting picks OAuth over a key."""

    client: str
    url: str | None
    model: str | None
    has_key: bool
    key_problem: str
    cloud_key: bool
    placeholder: bool
    oauth: bool
    oauth_chosen: bool


def read_client_config(path: str | Path) -> ClientConfig:
    """Return what a client's JSON (or Codex's TOML) sets; raise ParamsError for a file that is none."""
    data = _load(Path(path))
    leaves = list(_leaves(data))
    client = _client(leaves, Path(path).name)
    if client == "Codex" and Path(path).name == "auth.json":
        beside = Path(path).with_name("config.toml")
        if beside.is_file():
            leaves += list(_leaves(_load(beside)))
    return _read(client, leaves)


def config_checks(config: ClientConfig, url: str | None, models: list[str] | None) -> list[Check]:
    """Return what is wrong with a client's configuration for the server at `url` that serves `models`."""
    names = (("base URL", config.url), ("key", config.has_key or None), ("model", config.model))
    missing = [name for name, value in names if not value]
    checks = []
    if config.oauth_chosen or (config.oauth and not config.has_key):
        found = (
            f"{config.client} signs in with OAuth where an API key is meant; missing: {', '.join(missing) or 'nothing'}"
        )
        checks.append(_failed(found, "sign out there, then set base URL, key and model, all three", 88))
    elif missing:
        found = f"{config.client} configuration lacks: {', '.join(missing)}"
        checks.append(_failed(found, "base URL, key and model must all three be set", 86))
    if config.has_key and config.oauth and not config.oauth_chosen:
        found = f"{config.client} holds both an OAuth sign-in and a key: the sign-in may be the one in use"
        checks.append(_failed(found, "sign out of the account, keep the key", 60, "warning"))
    if config.key_problem:
        checks.append(_failed(f"{config.client}: {config.key_problem}", "copy the key again, as one line", 85))
    checks += _address(config, url)
    if models and config.model and config.model not in models:
        found = f"{config.client} asks for model {config.model!r}, the server has {', '.join(models[:5])}"
        checks.append(_failed(found, "use one of the server's model ids, or --served-model-name", 84))
    if not checks:
        return [Check("client-config", "ok", f"{config.client}: base URL, key and model {config.model!r} are set")]
    return checks


def _address(config: ClientConfig, url: str | None) -> list[Check]:
    checks = []
    host = urlsplit(config.url).hostname or "" if config.url else ""
    local = bool(host) and is_loopback(host)
    if local and config.cloud_key:
        found = f"{config.client} sends a cloud key to the local server {host}"
        checks.append(_failed(found, "set the local server's --api-key there (any word if it has none)", 83))
    if host and not local and config.placeholder and "." in host:
        found = f"{config.client} sends a placeholder as key to {host}"
        checks.append(_failed(found, "set that service's own key", 83))
    if config.client == "Claude Code" and config.url and re.search(r"/v1/?$", config.url):
        found = "ANTHROPIC_BASE_URL ends in /v1, and Claude Code adds /v1/messages itself"
        checks.append(_failed(found, "leave /v1 out of ANTHROPIC_BASE_URL", 82))
    if config.url and url and host and urlsplit(config.url).netloc != urlsplit(url).netloc:
        found = (
            f"{config.client} talks to {urlsplit(config.url).netloc.rsplit('@', 1)[-1]}, not to {urlsplit(url).netloc}"
        )
        checks.append(_failed(found, "set the client's base URL to this server", 81))
    return checks


def _failed(found: str, remedy: str, weight: int, status: str = "failed") -> Check:
    return Check("client-config", status, found, remedy, weight)


def _load(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ParamsError(f"{path}: cannot be read ({reason})", "give the client's settings file") from None
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else _json(text)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        raise ParamsError(
            f"{path}: not JSON ({where})", "mend the file: a client that cannot read it ignores it"
        ) from None
    if not isinstance(data, dict):
        raise ParamsError(f"{path}: not a JSON object", "give the client's settings file")
    return data


def _json(text: str) -> Any:
    """Parse JSON; editors' settings may hold comments and trailing commas, which are dropped outside strings."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        bare = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or "", text, flags=re.DOTALL)
        bare = re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda m: m[1] or "", bare)
        try:
            return json.loads(bare)
        except json.JSONDecodeError:
            raise error from None


def _leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(data, list):
        for value in data:
            yield from _leaves(value, path)
    else:
        yield path, data


def _plain(key: str) -> str:
    return re.sub(r"[^a-z]", "", key.rpartition(".")[2].lower())


def _client(leaves: list[tuple[tuple[str, ...], Any]], name: str) -> str:
    keys = {key for path, _ in leaves for key in path}
    if any(k.startswith("ANTHROPIC_") for k in keys) or "claudeAiOauth" in keys or "apiKeyHelper" in keys:
        return "Claude Code"
    if any(
        k.rpartition(".")[2] in ("apiProvider", "planModeApiProvider", "openAiBaseUrl", "openAiModelId") for k in keys
    ):
        return "Cline"
    if name in ("auth.json", "config.toml") or keys & {
        "model_provider",
        "model_providers",
        "last_refresh",
        "auth_mode",
    }:
        return "Codex"
    return "client"


def _read(client: str, leaves: list[tuple[tuple[str, ...], Any]]) -> ClientConfig:
    url = model = key = ""
    problem, oauth, chosen = "", False, False
    for path, value in sorted(leaves, key=lambda leaf: leaf[0][:1] != ("env",)):
        name = _plain(path[-1]) if path else ""
        if any("mcp" in part.lower() for part in path):
            continue
        if any(_plain(part) in _OAUTH_KEYS for part in path):
            oauth = oauth or bool(value)
            continue
        if not isinstance(value, str):
            continue
        if name in ("authmode", "forceloginmethod", "apiprovider", "actmodeapiprovider", "planmodeapiprovider"):
            chosen = chosen or value.lower() in _OAUTH_VALUES
        text = _resolved(name, value)
        if _URL.fullmatch(name):
            url = url or text.strip()
        elif _KEY.fullmatch(name) or name == "envkey":
            key, problem = _keep_key(key, problem, text, path[-1])
        elif name == "apikeyhelper" and value.strip():
            key = key or "from-a-helper"
        elif _MODEL.fullmatch(name):
            model = model or text.strip()
    placeholder = key.strip().lower() in _PLACEHOLDERS
    return ClientConfig(
        client, url or None, model or None, bool(key), problem, _is_cloud(key), placeholder, oauth or chosen, chosen
    )


def _keep_key(key: str, problem: str, text: str, source: str) -> tuple[str, str]:
    if not text:
        return key, problem
    try:
        return key or clean_key(text, source), problem or _untidy(text, source)
    except PrefixkitError as error:
        return key, problem or (error.message if not key else "")


def _untidy(text: str, source: str) -> str:
    return f"{source} has blanks or a line break around the key" if text != text.strip() else ""


def _resolved(name: str, value: str) -> str:
    """Return a value with a reference to a variable replaced by what this process has there."""
    match = re.fullmatch(r"\$\{(?:env:)?(\w+)\}|\$(\w+)|\{env:(\w+)\}", value.strip())
    variable = next((g for g in match.groups() if g), "") if match else ""
    if name == "envkey":
        variable = value.strip()
    return os.environ.get(variable, "") if variable else value


def _is_cloud(key: str) -> bool:
    return bool(_CLOUD_KEY.match(key.strip()))
