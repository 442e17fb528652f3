"""One finding with its evidence and remedy, and all of them together."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_ORDER = {"failed": 0, "warning": 1, "ok": 2, "info": 3, "skipped": 4}


@dataclass(frozen=True, slots=True)
class Check:
    """A finding: `status` is ok, failed, warning, info or skipped; `weight` ranks causes by their evidence."""

    name: str
    status: str
    found: str
    remedy: str = ""
    weight: int = 0

    def record(self) -> dict[str, str]:
        """Return the check as a JSON object."""
        return {"name": self.name, "status": self.status, "found": self.found, "remedy": self.remedy}


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis:
    """Every check, the likeliest cause first."""

    checks: tuple[Check, ...]

    @classmethod
    def of(cls, checks: Sequence[Check]) -> Diagnosis:
        """Rank checks: failures before warnings before the rest, stronger evidence first."""
        return cls(tuple(sorted(checks, key=lambda c: (_ORDER[c.status], -c.weight))))

    @property
    def exit_code(self) -> int:
        """Return 2 for an address that cannot be one, 1 when a check failed, else 0."""
        failed = {c.name for c in self.checks if c.status == "failed"}
        return 2 if "url" in failed else int(bool(failed))

    def record(self) -> dict[str, Any]:
        """Return the diagnosis as a JSON object."""
        return {"checks": [c.record() for c in self.checks]}

    def __repr__(self) -> str:
        lines = []
        for c in self.checks:
            lines.append(f"{c.status:8} {c.name}: {c.found}")
            if c.remedy:
                lines.append(f"{'':8}   -> {c.remedy}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = [(c.status, c.name, c.found, c.remedy) for c in self.checks]
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in cells)
        return f"<table><tr><th>status</th><th>check</th><th>found</th><th>remedy</th></tr>{rows}</table>"
