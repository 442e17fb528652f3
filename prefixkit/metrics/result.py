"""What a hit rate is, as a value: with its status, and never a number where it is not known."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass, field
from typing import Any


def count(queries: float, hits: float) -> dict[str, Any]:
    """Return queries, hits and their ratio, which is None where nothing was asked or hits exceed queries."""
    known = queries > 0 and 0 <= hits <= queries
    return {"queries": round(queries), "hits": round(hits), "hit_rate": hits / queries if known else None}


@dataclass(frozen=True, slots=True, repr=False)
class HitRate:
    """The prefix cache's hit rate between two readings.

    `status`: ok, renamed (both with a rate), disabled, no-queries, gauge-only, not-found, empty, restarted, wrong-page
    or unreachable. `unit`: tokens, blocks or unknown. `per_engine`: engine -> {queries, hits, hit_rate}. `lifetime`:
    the same since the server started, for context only. `external`: a KV connector's counters, left out of the rest.
    """

    status: str
    family: str | None = None
    unit: str | None = None
    queries: int | None = None
    hits: int | None = None
    hit_rate: float | None = None
    per_engine: dict[str, dict[str, Any]] = field(default_factory=dict)
    message: str = ""
    lifetime: dict[str, Any] | None = None
    external: dict[str, Any] | None = None
    block_size: int | None = None

    @property
    def tokens_saved(self) -> int | None:
        """Return the hits in tokens; None where the unit or the block size is not known."""
        if self.hits is None or self.status not in ("ok", "renamed"):
            return None
        if self.unit == "tokens":
            return self.hits
        return self.hits * self.block_size if self.unit == "blocks" and self.block_size else None

    def record(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {**asdict(self), "tokens_saved": self.tokens_saved}

    def __repr__(self) -> str:
        rate = "hit rate not known" if self.hit_rate is None else f"hit rate {self.hit_rate:.1%}"
        lines = [f"{rate} ({self.status}): {self.message}"]
        if self.family:
            lines.append(f"  {self.family}, in {self.unit}")
        if len(self.per_engine) > 1:
            lines += [f"  engine {name}: {_ratio(c)}" for name, c in self.per_engine.items()]
        if self.lifetime and self.lifetime["hit_rate"] is not None:
            lines.append(f"  since the server started (context only): {_ratio(self.lifetime)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rate = "not known" if self.hit_rate is None else f"{self.hit_rate:.1%}"
        rows = [("hit rate of this run", rate), ("status", self.status), ("what it means", self.message)]
        if self.family:
            rows.append(("counters", f"{self.family}, in {self.unit}"))
        rows += [(f"engine {name}", _ratio(c)) for name, c in self.per_engine.items()]
        if self.lifetime and self.lifetime["hit_rate"] is not None:
            rows.append(("since the server started", _ratio(self.lifetime)))
        cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows)
        return f"<table><thead><tr><th>counters</th><th>value</th></tr></thead><tbody>{cells}</tbody></table>"


def _ratio(c: dict[str, Any]) -> str:
    rate = "" if c["hit_rate"] is None else f", {c['hit_rate']:.1%}"
    return f"{c['hits']} of {c['queries']}{rate}"
