"""`report`: measure what is stale and render the article."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

from prefixkit.run import output_folder, report

HELP = "measure what is not yet measured and render the article"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path")
    parser.add_argument("--arms", default="off on cloud", help="arms to bring up to date")


def run(args: argparse.Namespace) -> int:
    """Run it; with --json everything but the one object goes to stderr, what the notebooks print included."""
    messages: list[str] = []

    def say(line: str) -> None:
        messages.append(line)
        print(line)

    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        code = report(args.profile, args.arms.replace(",", " ").split(), say)
    if args.json:
        print(json.dumps({"profile": args.profile, "out": str(output_folder(args.profile)), "messages": messages}))
    return code
