"""`python -m prefixkit fit RECORDS.jsonl...`"""

from __future__ import annotations

import argparse
import json

from prefixkit.records import read_records

HELP = "Fit TTFT-versus-length lines with intervals from record files."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the record files."""
    parser.add_argument("records", nargs="+", metavar="RECORDS.jsonl", help="record files, plain or gzipped")


def run(args: argparse.Namespace) -> int:
    """Print the fit; data that cannot be fitted are answered with statuses, an unreadable file is bad input."""
    from prefixkit.stats import fit  # statsmodels takes a second to import

    found = fit([record for path in args.records for record in read_records(path)])
    print(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False) if args.json else found)
    return 0
