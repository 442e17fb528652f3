"""`setup`: what a profile needs beside the report environment, and the embedded model."""

from __future__ import annotations

import argparse
from pathlib import Path

from prefixkit import paths
from prefixkit.model import write_embedded_model
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
    if args.needs:
        print(vllm_environment(params))
        return 0
    python = paths.ROOT / params.server.command[0]
    if python.is_file() and Path(params.server.command[0]).name.startswith("python"):
        write_embedded_model(params, python)
    return 0
