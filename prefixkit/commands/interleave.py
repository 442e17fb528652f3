"""`interleave`: both arms of one profile or several measured in turn against servers held open."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from prefixkit.interleave import interleave

HELP = "measure arms off and on in turn, round by round, against servers held open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", action="append", help="a name in params/ or a path; may stand several times")
    parser.add_argument("--out", type=Path, help="folder of the records of one profile (default: report/out/PROFILE)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of `length` before the other arm's turn")


def run(args: argparse.Namespace) -> int:
    """Measure; the article is rendered by `report`. With --json all but the one object goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        folders = interleave(args.profile or ["cpu"], args.out, rounds=args.rounds)
    if args.json:
        print(json.dumps({"out": [str(folder) for folder in folders]}))
    return 0
