"""What a client adds to a TTFT: ours and its peers against a server that logs its own delay of each request.

`python -m tests.bench.client_bench [--quick] [--aiperf DIR] [--out FILE]` prints overhead (TTFT less the server's
delay), the recovered line of TTFT against prompt size, ratios to ours and whether the targets hold, and writes them as
JSON. AIPerf is installed into a throw-away environment unless --aiperf names one.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from prefixkit import paths
from prefixkit.errors import PrefixkitError
from prefixkit.probe.calibrate import known_server
from tests.bench.aiperf import Aiperf

SIZES = {3_000: "3 KB", 100_000: "100 KB", 500_000: "500 KB"}
CONCURRENCIES = (1, 16, 64)
LINE_SIZES = [1_000 * 2**step for step in range(8)]
LINE = ("--delay-ms", "10", "--us-per-kb", "850", "--gap-ms", "2")
FIXED = ("--delay-ms", "20", "--gap-ms", "2")
OURS = "prefixkit"
VLLM_PYTHON = paths.ROOT / ".venv-vllm/bin/python"
P50_MS, SLOPE_BIAS, INTERCEPT_BIAS_MS = 0.5, 0.002, 0.6


def overheads(
    client: str, sizes: list[int], each: int, concurrency: int, server: tuple[str, ...], aiperf: Aiperf | None
) -> np.ndarray:
    """Return bytes, the server's delay and the client's overhead (ms), a column for each request."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.jsonl")
        with known_server(*server, "--log", str(log)) as url:
            if client == "aiperf":
                rows = [row for size in sizes for row in aiperf.run(url, size, each, concurrency)]
            else:
                python = VLLM_PYTHON if client == "vllm" else sys.executable
                command = [python, "tests/bench/clients.py", client, url, "--concurrency", str(concurrency)]
                command += ["--each", str(each), "--bytes", *map(str, sizes)]
                done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise PrefixkitError(f"{client}: {done.stderr.strip().splitlines()[-1]}")
                rows = json.loads(done.stdout)
        by_id = {row["id"]: row for row in map(json.loads, log.read_text().splitlines())}
    whole = [row if "delay_ms" in row else {**row, **by_id[row["id"]]} for row in rows]
    return np.array([[row["bytes"], row["delay_ms"], row["ttft_ms"] - row["delay_ms"]] for row in whole]).T


def attempt(client: str, *cell: Any) -> np.ndarray | None:
    """Return `overheads`, or None where a peer failed (said on the spot); our own failure ends the run."""
    try:
        return overheads(client, *cell)
    except PrefixkitError as error:
        if client == OURS:
            raise
        print(f"{client} left out of a cell: {error}", flush=True)
        return None


def line(size, delay_ms, overhead_ms) -> dict:
    """Return the bias of slope (share) and intercept (ms) of a least-squares line through a client's TTFTs."""
    server = np.polyfit(size, delay_ms, 1)
    client = np.polyfit(size, delay_ms + overhead_ms, 1)
    return {
        "n": len(size),
        "server_us_per_kb": server[0] * 1e6,
        "slope_bias": client[0] / server[0] - 1,
        "intercept_bias_ms": client[1] - server[1],
    }


def available(args: argparse.Namespace) -> tuple[list[str], Aiperf | None]:
    """Return the clients that can run here, saying why the others cannot."""
    clients = [OURS, "vllm", "openai", "httpx", "aiperf"]
    if not VLLM_PYTHON.exists():
        print("vllm: left out, no .venv-vllm (make setup PROFILE=cpu)")
        clients.remove("vllm")
    if args.quick:
        clients.remove("aiperf")
        return clients, None
    try:
        return clients, Aiperf(args.aiperf)
    except PrefixkitError as error:
        print(f"aiperf: left out, {error}")
        clients.remove("aiperf")
        return clients, None


def measure(clients: list[str], aiperf: Aiperf | None, *, quick: bool) -> dict:
    """Run every client in every cell, in a random order in each."""
    order = random.Random(1)
    cells, lines = [], {}
    for size in SIZES:
        for concurrency in CONCURRENCIES:
            each = (20 if quick else 100) + 4 * concurrency
            for client in order.sample(clients, len(clients)):
                got = attempt(client, [size], each, concurrency, FIXED, aiperf)
                if got is None:
                    continue
                overhead = got[2]
                p50, p99 = (float(np.percentile(overhead, q)) for q in (50, 99))
                cell = {"client": client, "bytes": size, "concurrency": concurrency, "n": len(overhead)}
                cells.append({**cell, "p50_ms": p50, "p99_ms": p99})
                print(
                    f"{SIZES[size]:>7} x {concurrency:<3}{client:<10} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms", flush=True
                )
    for client in order.sample(clients, len(clients)):
        got = attempt(client, LINE_SIZES, 5 if quick else 20, 1, LINE, aiperf)
        if got is not None:
            lines[client] = line(*got)
    return {"machine": platform.platform(), "cells": cells, "lines": lines}


def with_ratios(found: dict) -> dict:
    """Add each cell's p50 as a multiple of ours, and which targets hold."""
    ours = {(c["bytes"], c["concurrency"]): c for c in found["cells"] if c["client"] == OURS}
    for cell in found["cells"]:
        cell["ratio_p50"] = cell["p50_ms"] / ours[cell["bytes"], cell["concurrency"]]["p50_ms"]
    peers = [c for c in found["cells"] if c["client"] != OURS]
    own_line = found["lines"][OURS]
    found["targets"] = {
        f"p50 at concurrency 1 at most {P50_MS} ms": all(c["p50_ms"] <= P50_MS for k, c in ours.items() if k[1] == 1),
        "p50 lower than every peer in every cell": all(c["ratio_p50"] > 1 for c in peers),
        f"slope bias below {SLOPE_BIAS:.1%}": bool(abs(own_line["slope_bias"]) < SLOPE_BIAS),
        f"intercept bias below {INTERCEPT_BIAS_MS} ms": bool(abs(own_line["intercept_bias_ms"]) < INTERCEPT_BIAS_MS),
    }
    return found


def cell_text(cell: dict | None) -> str:
    """Return one cell of the table."""
    return f"{cell['p50_ms']:.2f} ({cell['p99_ms']:.2f}) {cell['ratio_p50']:.1f}x" if cell else "failed"


def show(found: dict) -> None:
    """Print the table, the lines and the targets."""
    clients = sorted({cell["client"] for cell in found["cells"]}, key=lambda name: name != OURS)
    print(f"\noverhead p50 (p99) in ms, and p50 as a multiple of ours\n{'':>14}" + "".join(f"{c:>26}" for c in clients))
    for size, name in SIZES.items():
        for concurrency in CONCURRENCIES:
            row = {c["client"]: c for c in found["cells"] if (c["bytes"], c["concurrency"]) == (size, concurrency)}
            texts = [cell_text(row.get(client)) for client in clients]
            print(f"{name:>8} x {concurrency:<3}" + "".join(f"{text:>26}" for text in texts))
    print("\nline of TTFT against prompt size, bias against the server's own line")
    for client, bias in found["lines"].items():
        print(f"{client:>12}  slope {bias['slope_bias']:+.2%}   intercept {bias['intercept_bias_ms']:+.2f} ms")
    print()
    for target, held in found["targets"].items():
        print(f"{'holds ' if held else 'MISSED'}  {target}")


def main() -> int:
    """Measure, print and write; a missed target is printed, not an error, since machines differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests, no AIPerf: a trial")
    parser.add_argument("--aiperf", type=Path, help="an environment that holds AIPerf, in place of a throw-away one")
    parser.add_argument("--out", type=Path, default=paths.OUT / "bench" / "client.json")
    args = parser.parse_args()
    clients, aiperf = available(args)
    try:
        found = with_ratios(measure(clients, aiperf, quick=args.quick))
    finally:
        if aiperf is not None:
            aiperf.close()
    show(found)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"\nwritten to {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
