"""Steps that a straight line smooths over: chunks of a chunked prefill, and blocks of the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.adequacy import order_terms
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.line import Line
from prefixkit.stats.regression import regress
from prefixkit.stats.rows import Floats, Rows, nested

MIN_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Steps:
    """What each further chunk of a prefill adds, and what a token beyond the last full block costs (per token)."""

    chunk: Estimate
    block: Estimate


def steps(off: Line, on: Line, *, chunk_tokens: int | None, block_size: int | None) -> Steps:
    """Estimate both steps beside the line; "not-estimable" where the lengths cannot tell step from slope."""
    return Steps(_chunk(off, chunk_tokens), _block(on, block_size))


def server_steps(records: Iterable[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Return (chunk tokens, block size) of the run: `max_num_batched_tokens` as passed, block size as served."""
    chunk: int | None = None
    block: int | None = None
    for record in records:
        if record.get("record") != "run" or record.get("experiment"):
            continue
        chunk = _count(nested(record, "params", "server", "engine_args", "max_num_batched_tokens")) or chunk
        block = _count(record.get("block_size")) or block
    return chunk, block


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _chunk(line: Line, chunk: int | None) -> Estimate:
    rows = line.rows
    if chunk is None:
        return missing(
            "unknown", "The chunk size of the server is not known (max_num_batched_tokens).", unit="ms/chunk"
        )
    if rows is None or not rows.n:
        return missing("empty", "No off requests.", unit="ms/chunk")
    chunks = np.ceil(rows.tokens / chunk)
    return _beside_line(
        line, rows, chunks, "ms/chunk", f"No measured prompt is longer than a chunk of {chunk:,} tokens."
    )


def _block(line: Line, block: int | None) -> Estimate:
    rows = line.rows
    if block is None:
        return missing("unknown", "The block size of the server is not known.", unit="ms/token")
    if rows is None or not rows.n:
        return missing("empty", "No warm requests.", unit="ms/token")
    # Beyond the last full block nothing is cached: these tokens are computed even when warm.
    rest = (rows.tokens - 1) % block
    return _beside_line(line, rows, rest, "ms/token", f"All prompts end at the same place of a block of {block}.")


def _beside_line(line: Line, rows: Rows, column: Floats, unit: str, flat: str) -> Estimate:
    if np.ptp(column) == 0:
        return missing("not-estimable", flat, n=rows.n, unit=unit)
    base = np.column_stack([np.ones(rows.n), rows.tokens])
    left = column - base @ np.linalg.lstsq(base, column, rcond=None)[0]
    if left @ left < MIN_TOLERANCE * float(((column - column.mean()) ** 2).sum()) or rows.n < 6 or rows.lengths < 4:
        note = "These lengths cannot tell a step from the slope: it needs four or more, on both sides of each border."
        return missing("not-estimable", note, n=rows.n, unit=unit)
    trend = [*order_terms(rows).T] if line.trend else []
    model = regress(rows.ttft_ms, np.column_stack([rows.tokens, column, *trend]), scale_by=rows.tokens)
    if model.exact:
        return missing("exact", "No noise to make an interval from.", n=rows.n, unit=unit)
    return model.coefficient(1).estimate(n=rows.n, unit=unit, method=model.method)
