"""`interleave`: both arms measured in turn against two servers held open."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from prefixkit.interleave import interleave

HELP = "measure arms off and on in turn, round by round, against two servers held open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path")
    parser.add_argument("--out", type=Path, help="folder of the records (default: report/out/PROFILE)")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of `length` before the other arm's turn")


def run(args: argparse.Namespace) -> int:
    """Measure; the article is rendered by `report`. With --json all but the one object goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        out = interleave(args.profile, args.out, rounds=args.rounds)
    if args.json:
        print(json.dumps({"out": str(out)}))
    return 0
