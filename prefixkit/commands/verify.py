"""`python -m prefixkit verify`: render a published data set again and compare every claim."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from prefixkit.publish import Verdict, verify

HELP = "render the published data set NAME and compare every number"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--name", required=True, help="a folder of report/published")


def run(args: argparse.Namespace) -> int:
    """Verify; 1 when a file or a claim differs."""
    verdict = verify(args.name)
    print(json.dumps({**asdict(verdict), "equal": verdict.equal}, ensure_ascii=False) if args.json else _text(verdict))
    return 0 if verdict.equal else 1


def _text(verdict: Verdict) -> str:
    lines = [f"{file}: not as published (see SHA256SUMS)" for file in verdict.files]
    lines += [f"{d.name}: published {d.published}, now {d.rendered}" for d in verdict.differences]
    if verdict.equal:
        lines.append(f"{verdict.name}: all {verdict.claims} claims are the same, all files are as published")
    else:
        lines.append(f"{verdict.name}: {len(verdict.files)} files and {len(verdict.differences)} claims differ")
    return "\n".join(lines)
