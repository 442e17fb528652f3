"""Run every check that the given inputs allow and rank what they found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prefixkit.doctor.cache import CacheFacts, cache_facts
from prefixkit.doctor.check import Check, Diagnosis
from prefixkit.doctor.client_config import ClientConfig, config_checks, read_client_config
from prefixkit.doctor.connection import ask_models, chat_checks, model_check, proxy_check
from prefixkit.doctor.differ import Tokenize
from prefixkit.doctor.live import LiveTest, answered
from prefixkit.doctor.live_checks import live_checks
from prefixkit.doctor.prompts import Prompt, prompt_checks, read_prompts
from prefixkit.doctor.server_log import LogFacts, log_check, read_log
from prefixkit.doctor.verdict import explain
from prefixkit.doctor.versions import version_check
from prefixkit.errors import ProbeError
from prefixkit.probe import Client, endpoints

TIMEOUT_S = 12.0


def diagnose(
    url: str,
    *,
    model: str | None = None,
    api_key: str | None = None,
    client_config: str | Path | None = None,
    messages: str | Path | Sequence[Prompt] | None = None,
    metrics_urls: Sequence[str] | None = None,
    log: str | Path | None = None,
    live: bool = True,
    key_source: str = "api_key",
) -> Diagnosis:
    """Say why prefix caching at `url` gives what it gives, the likeliest cause first.

    Sends at most 20 short requests and never resets, restarts or evicts. `messages` is a file or a list of prompts to
    compare, `client_config` the settings of Claude Code, Cline or Codex, `log` the server's log file.
    """
    config = read_client_config(client_config) if client_config is not None else None
    prompts = read_prompts(messages) if isinstance(messages, str | Path) else list(messages or ())
    facts = read_log(log) if log is not None else LogFacts()
    checks = [log_check(facts)] if log is not None else []
    try:
        places = endpoints(url)
        checks += proxy_check(url)
        client = Client(url, model or "unknown", api_key, timeout_s=TIMEOUT_S, key_source=key_source)
    except ProbeError as error:
        name = "key" if api_key is not None and "key from" in error.message else "url"
        checks.append(Check(name, "failed", error.message, error.remedy, 100))
        return Diagnosis.of([*checks, *_offline(config, None, prompts)])
    with client:
        served = ask_models(client, url)
        checks += served.checks
        if not served.reached or any(c.name == "key" for c in served.checks):
            return Diagnosis.of([*checks, *_offline(config, url, prompts)])
        version = client.version()
        cache = cache_facts(metrics_urls or [places.metrics], facts, version)
        checks += [version_check(version), *cache.checks]
        used, found = model_check(model, served)
        checks += found
        if config is not None:
            checks += config_checks(config, url, list(served.models))
    if used is None:
        return Diagnosis.of([*checks, *_offline(None, url, prompts)])
    with Client(url, used, api_key, timeout_s=TIMEOUT_S, max_attempts=1) as client:
        ping = client.probe([{"role": "user", "content": "ping"}])
        checks += chat_checks(ping, api_key is not None)
        tokenize = _tokenizer(client) if prompts else None
        if answered(ping) and live:
            test = LiveTest(client, metrics_urls or [places.metrics], cache.config, version, served.max_model_len)
            test.run()
            checks += [*live_checks(test), *explain(test.evidence(cache.enabled, cache.block_size, _per_engine(cache)))]
        elif cache.enabled is False:
            checks += explain(LiveTest(client, (), cache.config).evidence(False, None, None))
        checks += prompt_checks(prompts, tokenize, cache.block_size, _per_engine(cache)) if prompts else []
    return Diagnosis.of(_once(checks))


def _offline(config: ClientConfig | None, url: str | None, prompts: Sequence[Prompt]) -> list[Check]:
    """Return what can be said without a server."""
    checks = config_checks(config, url, None) if config is not None else []
    return [*checks, *(prompt_checks(prompts, None, None, None) if prompts else [])]


def _per_engine(cache: CacheFacts) -> int | None:
    capacity = cache.kv_capacity_tokens
    return capacity // max(1, cache.config.engines) if capacity else None


def _tokenizer(client: Client) -> Tokenize | None:
    """Return the server's tokenizer, or None where it has no /tokenize."""
    try:
        client.tokenize("a")
    except ProbeError:
        return None
    return lambda messages: client.tokenize(list(messages))


def _once(checks: Sequence[Check]) -> list[Check]:
    """Drop a failed finding that another with the same name repeats with less evidence."""
    best: dict[str, int] = {}
    for c in checks:
        if c.status == "failed":
            best[c.name] = max(best.get(c.name, 0), c.weight)
    return [c for c in checks if c.name == "client-config" or c.status != "failed" or c.weight == best[c.name]]
