"""`python -m prefixkit publish`: put a profile's results into report/published/NAME."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from prefixkit.publish import publish

HELP = "publish the results of PROFILE as report/published/NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--name", required=True, help="name of the published set")
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path; default: cpu")
    parser.add_argument("--compare", help="a published set to set beside it; default: report.compare of the profile")


def run(args: argparse.Namespace) -> int:
    """Publish, and say where the files are."""
    folder = publish(args.name, args.profile, partial(print, file=sys.stderr), compare=args.compare)
    files = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    if args.json:
        print(json.dumps({"folder": str(folder), "files": files}))
    else:
        print("\n".join([str(folder), *(f"  {file}" for file in files)]))
    return 0
