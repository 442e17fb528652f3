"""`compare`: two runs side by side (another vLLM, another GPU, last week)."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import RecordsError
from prefixkit.records import Record, read_records

HELP = "compare the lines of two runs, or say why they are not comparable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two runs."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper(), help="folder of a run's records, or a published set's name")


def run(args: argparse.Namespace) -> int:
    """Print the differences; 1 when the runs are not comparable."""
    from prefixkit.stats import compare  # statsmodels takes a second to import

    found = compare(_records(args.first), _records(args.second))
    if args.json:
        print(json.dumps(asdict(found), ensure_ascii=False, default=str))
    else:
        for key, (first, second) in found.changed.items():
            print(f"{key}: {first} | {second}")
        for difference in found.differences:
            print(f"{difference.name}: {difference.first} | {difference.second}; difference {difference.difference}")
        print(found.note)
    return int(found.status != "ok")


def _records(run_folder: str) -> list[Record]:
    """Return the records of the arms on and off of a run."""
    for folder in (Path(run_folder), paths.ROOT / run_folder, paths.PUBLISHED / run_folder):
        files = [folder / f"{arm}.{end}" for arm in ("off", "on") for end in ("jsonl", "jsonl.gz")]
        if found := [record for file in files if file.is_file() for record in read_records(file)]:
            return found
    raise RecordsError(f"{run_folder}: no on.jsonl or off.jsonl there", "give a folder such as report/out/cpu")
