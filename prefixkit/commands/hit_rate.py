"""`hit-rate BEFORE AFTER`: what the prefix cache did between two readings of /metrics."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from prefixkit.errors import ParamsError

HELP = "hit rate of one run from two readings of /metrics (files or URLs)"
_ANSWERED = ("ok", "renamed", "disabled", "no-queries", "gauge-only")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("before", metavar="BEFORE", help="file or URL of the page before the run")
    parser.add_argument("after", metavar="AFTER", help="file or URL of the page after it")


def run(args: argparse.Namespace) -> int:
    """Print the hit rate; 0 when the question is answered, 1 when the pages do not tell."""
    from prefixkit.metrics import HitRate, MetricsError, UnreachableError, hit_rate

    try:
        rate = hit_rate(_page(args.before), _page(args.after))
    except UnreachableError as error:
        rate = HitRate("unreachable", message=str(error))
    except MetricsError as error:
        rate = HitRate("wrong-page", message=str(error))
    print(json.dumps(rate.record(), ensure_ascii=False) if args.json else rate)
    return 0 if rate.status in _ANSWERED else 1


def _page(source: str) -> str | bytes:
    from prefixkit.metrics import fetch

    if source.startswith(("http://", "https://")):
        return fetch(source)[0]
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise ParamsError(f"{source}: cannot be read ({error.strerror})", "give a file or an http:// address") from None
