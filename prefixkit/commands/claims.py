"""`claims`: print the claims of a report, or check some of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from prefixkit import paths
from prefixkit.claims import FILE, Check, Claim, check, read_claims, text
from prefixkit.params import profile_name

HELP = "print the numbers of an article, or check them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path; its results are in report/out/")
    parser.add_argument("--name", help="a published data set instead, a folder of report/published/")
    parser.add_argument("--from", dest="source", help="a claims.json or its folder instead")
    parser.add_argument(
        "--check", help='checks separated by commas, such as "slope_reduction>=0.9"; exit 1 if one fails'
    )


def run(args: argparse.Namespace) -> int:
    """Run it; exit 0 when every check holds."""
    claims = read_claims(_source(args))
    answers = check(claims, args.check) if args.check else []
    if args.json:
        print(json.dumps(_json(claims, answers, bool(args.check)), ensure_ascii=False))
    elif answers:
        for answer in answers:
            print(f"{'ok  ' if answer.passed else 'FAIL'} {answer.expression} (it is {_shown(answer.value)})")
    else:
        for claim in claims.values():
            print(f"{claim.name} = {text(claim, part='full').replace(chr(92), '')}  [{claim.source}]")
    return 0 if all(answer.passed for answer in answers) else 1


def _source(args: argparse.Namespace) -> Path:
    if args.source:
        return Path(str(args.source)).expanduser()
    if args.name:
        return paths.PUBLISHED / str(args.name) / FILE
    return paths.OUT / profile_name(args.profile) / FILE


def _json(claims: Mapping[str, Claim], answers: list[Check], checked: bool) -> dict[str, object]:
    if not checked:
        return {name: claim.record() for name, claim in claims.items()}
    rows = [{"check": a.expression, "value": a.value, "passed": a.passed} for a in answers]
    return {"checks": rows, "passed": all(a.passed for a in answers)}


def _shown(value: float | str | None) -> str:
    return "not measured" if value is None else f"{value:.6g}" if isinstance(value, float | int) else value
