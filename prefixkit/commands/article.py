"""`python -m prefixkit article`: render a published data set again."""

from __future__ import annotations

import argparse
import json

from prefixkit.publish import render_published
from prefixkit.render import RENDERED

HELP = "render the published data set NAME again, into report/out/NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--name", required=True, help="a folder of report/published")
    parser.add_argument("--lang", choices=("en", "zh"), help="language of the article; default: as published")
    parser.add_argument("--compare", help="a run to set beside it: a published set, or a folder; default: as published")


def run(args: argparse.Namespace) -> int:
    """Render, and say where the files are."""
    out = render_published(args.name, args.lang, args.compare)
    if args.json:
        print(json.dumps({"out": str(out), "files": [str(out / name) for name in RENDERED]}))
    else:
        print(f"article of {args.name}: {out / RENDERED[0]} and {out / RENDERED[1]}")
    return 0
