"""`setup`: what a profile needs beside the report environment, and the embedded model."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from prefixkit import paths
from prefixkit.model import model_path, write_embedded_model
from prefixkit.params import Params, load_params

HELP = "write out the embedded model of a profile"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--profile", default="cpu", help="a name in params/ or a path")
    parser.add_argument("--needs", action="store_true", help="only say which vLLM environment it needs")


def vllm_environment(params: Params) -> str:
    """Return which of our vLLM environments the profile starts its server from: cpu, gpu or none."""
    if params.server.launcher != "local":
        return "none"
    program = params.server.command[0]
    return "cpu" if program.startswith(".venv-vllm/") else "gpu" if program == "vllm" else "none"


def run(args: argparse.Namespace) -> int:
    """Write the model, or say what is needed."""
    params = load_params(args.profile)
    needs = vllm_environment(params)
    if not args.needs:
        python = paths.ROOT / params.server.command[0]
        if python.is_file() and python.name.startswith("python"):
            write_embedded_model(params, python, partial(print, file=sys.stderr))
    if args.json:
        print(json.dumps({"environment": needs, "model": model_path(params)}))
    elif args.needs:
        print(needs)
    return 0
