"""How near prefill is to what the device can compute: operations of a prompt over the rate measured beside the runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.parts import parts
from prefixkit.article.section import Context, Section, Table, joined
from prefixkit.claims import Claims
from prefixkit.figures import limit as figures
from prefixkit.figures.style import Picture
from prefixkit.peak import Shape
from prefixkit.records import Record
from prefixkit.stats.estimate import Estimate

RATE = 1e9  # operations in a millisecond at 1 TFLOP/s


@lru_cache(maxsize=8)
def device(data: Data) -> Record | None:
    """Return the last `device` record of either arm."""
    found = [r for arm in ("off", "on") for r in data.arm(arm).of("device") if r.get("bf16_tflops") and r.get("shape")]
    return found[-1] if found else None


def cards(data: Data) -> int:
    """Return how many devices work on one request: those of tensor parallel."""
    arguments = (data.params.get("server") or {}).get("engine_args")
    return int(arguments.get("tensor_parallel_size") or 1) if isinstance(arguments, dict) else 1


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the rate, of the limit at each length, and of the slope's share of it."""
    record = device(data)
    source = "device record: bf16 product of random 8,192 x 8,192 matrices, median"
    claims.add("device_bf16_tflops", record["bf16_tflops"] if record else None, "TFLOP/s", source=source)
    claims.add("device_name", str(record["device"]) if record else None, "text", source="device record")
    if cards(data) > 1:
        claims.add("limit_devices", cards(data), "count", source="params: server.engine_args.tensor_parallel_size")
    shape = Shape(**record["shape"]) if record else None
    claims.add("model_parameters", shape.parameters if shape else None, "count",
               source="device record: shape, from the model's config.json")  # fmt: skip
    rows = parts(data)["off"].by_length if record and shape else ()
    for index, row in enumerate(rows, 1):
        assert record and shape
        engine = row.parts["engine"]
        limit = shape.prefill_flops(row.tokens) / (record["bf16_tflops"] * RATE * cards(data))
        here = f"off: length cold, {row.tokens:.0f} tokens"
        claims.add(f"limit_{index}_tokens", row.tokens, "tokens", source=here)
        claims.add(f"limit_{index}_tflop", shape.prefill_flops(row.tokens) / 1e12, "TFLOP", source=f"{here}, counted")
        claims.add(f"limit_{index}_ms", limit, "ms", source=f"{here}, operations over the measured rate")
        claims.estimate(f"limit_{index}_engine_ms", engine, "ms", f"{here}, server")
        claims.estimate(f"limit_{index}_share", _over(limit, engine), "fraction", f"{here}, limit over engine")
    claims.add("limits", len(rows) or None, "count", source="off: lengths with the server's own times")
    last = len(rows)
    for name in ("tokens", "tflop", "ms", "engine_ms", "share"):
        known = claims.get(f"limit_{last}_{name}")
        claims.add(f"limit_longest_{name}", known.value if known else None, known.unit if known else "ms",
                   known.ci if known else None, known.source if known else "off: length, longest prompt")  # fmt: skip
    slope = _slope(data) if rows else None
    claims.add("limit_slope_ms_per_1k", slope, "ms/1k", source="limits at the requests' prompt lengths, least squares")
    measured = parts(data)["off"].slopes.get("engine", Estimate(None))
    found = _over(slope, measured) if slope is not None else Estimate(None)
    claims.estimate("limit_slope_share", found, "fraction", "limit_slope / part_off_engine_slope")


def _over(limit: float, measured: Estimate) -> Estimate:
    """Return a limit over what was measured; the limit has no interval of its own."""
    if not measured.value:
        return Estimate(None)
    low, high = measured.low, measured.high
    return Estimate(limit / measured.value, limit / high if high else None, limit / low if low else None)


def _slope(data: Data) -> float:
    """Return the slope of the limit over the requests that the measured line was fitted to."""
    record = device(data)
    assert record
    shape = Shape(**record["shape"])
    tokens = np.array([float(r["prompt_tokens"]) for r in data.probes("off", "length", "cold")])
    limits = np.array([shape.prefill_flops(t) for t in tokens]) / (record["bf16_tflops"] * RATE * cards(data))
    return float(np.polyfit(tokens / 1000, limits, 1)[0])


def _picture(ctx: Context) -> Picture | None:
    rows = [
        {"prompt_tokens": ctx.number(f"limit_{i}_tokens"), "engine_ms": ctx.number(f"limit_{i}_engine_ms"),
         "limit_ms": ctx.number(f"limit_{i}_ms"), "share": ctx.number(f"limit_{i}_share")}
        for i in range(1, int(ctx.number("limits") or 0) + 1)
    ]  # fmt: skip
    return figures.shares(pd.DataFrame(rows), ctx.words) if rows else None


def _table(ctx: Context) -> Table | None:
    rows = [
        (ctx.cell(f"limit_{i}_tokens"), ctx.cell(f"limit_{i}_tflop"), ctx.cell(f"limit_{i}_ms"),
         ctx.ci(f"limit_{i}_engine_ms"), ctx.ci(f"limit_{i}_share"))
        for i in range(1, int(ctx.number("limits") or 0) + 1)
    ]  # fmt: skip
    return Table(("prompt_tokens", "tflop", "limit_ms", "part_engine", "limit_share"), tuple(rows)) if rows else None


def _sentences(ctx: Context) -> str:
    if not ctx.has("limit_slope_share", "limit_longest_share"):
        return ctx.say("limit.none")
    return joined(ctx.say("limit.shown"), ctx.say("limit.devices") if ctx.has("limit_devices") else "")


SECTION = Section(claim, {"limit": _picture}, {"limit": _table}, {"limit": _sentences})
