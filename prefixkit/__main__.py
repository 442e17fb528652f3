"""The command line: `python -m prefixkit COMMAND`; each command is a module of `prefixkit.commands`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import traceback

from prefixkit.errors import PrefixkitError

COMMANDS = (
    "probe",
    "hit-rate",
    "fit",
    "doctor",
    "serve",
    "report",
    "article",
    "publish",
    "verify",
    "claims",
    "setup",
    "interleave",
    "peak",
    "compare",
)


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 answered, 1 a check failed or nothing reachable, 2 bad input."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m prefixkit", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Only the wanted command is imported: `setup` should not wait for the statistics.
    for name in [c for c in COMMANDS if c in argv[:1]] or COMMANDS:
        module = importlib.import_module(f"prefixkit.commands.{name.replace('-', '_')}")
        sub = subparsers.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.add_argument("--json", action="store_true", help="print exactly one JSON object on stdout")
        sub.set_defaults(run=module.run)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:
        if stop.code and "--json" in argv:
            print(json.dumps({"error": {"message": "bad arguments", "remedy": "see --help"}}))
        return int(stop.code or 0)
    try:
        return int(args.run(args))
    except PrefixkitError as error:
        if args.json:
            print(json.dumps({"error": {"message": error.message, "remedy": error.remedy}}, ensure_ascii=False))
        print(f"prefixkit: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `| head` has read enough; nothing more can be written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if not args.json:
            raise
        traceback.print_exc()
        print(json.dumps({"error": {"message": f"{type(error).__name__}: {error}", "remedy": "see the traceback"}}))
        return 1
    except KeyboardInterrupt:
        print("prefixkit: interrupted; what was measured is kept, the same command continues", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
