"""`peak`: the bf16 matrix rate of this machine's device, beside the records of an arm."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from prefixkit import paths
from prefixkit.params import load_arm, profile_name
from prefixkit.peak import record_peak

HELP = "measure the device's bf16 matrix rate and append it to an arm's records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", default="gpu", help="a name in params/ or a path")
    parser.add_argument("--arm", default="on", choices=("on", "off"), help="whose records get it")
    parser.add_argument("--out", type=Path, help="folder of the records (default: report/out/PROFILE)")


def run(args: argparse.Namespace) -> int:
    """Measure once and print what was found."""
    name = profile_name(args.profile)
    said: list[str] = []
    folder = args.out or paths.OUT / name
    path = record_peak(load_arm(args.profile, args.arm), args.arm, folder, name, said.append if args.json else print)
    if args.json:
        print(json.dumps({"records": str(path), "messages": said}))
    return 0
