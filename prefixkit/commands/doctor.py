"""`doctor --url URL`: find out why the cache gives what it gives."""

from __future__ import annotations

import argparse
import json
import os

HELP = "check a server: connection, key, model, cache setting, metrics, a short live test, your prompts"
DEFAULT_URL = "http://127.0.0.1:8000/v1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--url", default="", help=f"API base (default {DEFAULT_URL})")
    parser.add_argument("--model", help="model id (default: the first that the server lists)")
    parser.add_argument("--api-key-env", metavar="VAR", help="name of the variable that holds the key")
    parser.add_argument("--metrics-url", action="append", metavar="URL", help="an engine's metrics page; repeatable")
    parser.add_argument("--client-config", metavar="FILE", help="settings of Claude Code, Cline or Codex")
    parser.add_argument("--messages", metavar="FILE", help="prompts to compare, in order (JSON or JSON lines)")
    parser.add_argument("--log", metavar="FILE", help="the server's log")
    parser.add_argument("--no-live", action="store_true", help="send no test prompts")


def run(args: argparse.Namespace) -> int:
    """Print the checks, the likeliest cause first; 1 when one failed."""
    from prefixkit.doctor import diagnose

    key = os.environ.get(args.api_key_env, "") if args.api_key_env else None
    found = diagnose(
        args.url or DEFAULT_URL,
        model=args.model,
        api_key=key,
        client_config=args.client_config,
        messages=args.messages,
        metrics_urls=args.metrics_url,
        log=args.log,
        live=not args.no_live,
        key_source=args.api_key_env or "api_key",
    )
    print(json.dumps(found.record(), ensure_ascii=False) if args.json else found)
    return found.exit_code
