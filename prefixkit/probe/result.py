"""What one request gave."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

from prefixkit.records import now


@dataclass(frozen=True, slots=True)
class Probe:
    """One request: times in ms from its first byte leaving (`connect` apart), tokens as the server counts them.

    `timings` may hold connect, headers, first_byte, role, first_token, first_content, last_token, end; `server` holds
    the server's own times (queue_ms; ttft_ms from being scheduled to the first token). None means not reported.
    """

    ttft_ms: float | None = None
    content_ms: float | None = None
    e2e_ms: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    timings: dict[str, float] = field(default_factory=dict)
    server: dict[str, float] | None = None
    attempt: int = 1
    warnings: tuple[str, ...] = ()
    error: dict[str, str] | None = None
    text: str = ""
    at: str = field(default_factory=now)

    def record(self) -> dict[str, Any]:
        """Return the fields of a probe record; the reply's text is not among them."""
        return {
            "ttft_ms": self.ttft_ms,
            "content_ms": self.content_ms,
            "e2e_ms": self.e2e_ms,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "completion_tokens": self.completion_tokens,
            "timings": dict(self.timings),
            "server": dict(self.server) if self.server is not None else None,
            "attempt": self.attempt,
            "warnings": list(self.warnings),
            "error": dict(self.error) if self.error is not None else None,
            "at": self.at,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a person wants to know of it, as (name, text)."""
        shown = [
            ("first token", _ms(self.ttft_ms)),
            ("first content", _ms(self.content_ms)),
            ("last token", _ms(self.e2e_ms)),
            ("prompt tokens", _count(self.prompt_tokens)),
            ("cached tokens", _count(self.cached_tokens)),
            ("completion tokens", _count(self.completion_tokens)),
        ]
        if self.error is not None:
            failure = ("error", f"{self.error.get('kind')}: {self.error.get('message')}")
            shown = [failure, *((name, text) for name, text in shown if text not in (NO_TIME, NO_COUNT))]
        shown += [(f"server's {name.removesuffix('_ms')}", _ms(value)) for name, value in (self.server or {}).items()]
        if self.attempt > 1:
            shown.append(("attempt", str(self.attempt)))
        shown += [("warning", warning) for warning in self.warnings]
        return [*shown, ("reply", self.text)] if self.text else shown

    def __repr__(self) -> str:
        parts = [f"{name}: {' '.join(text.split())}" for name, text in self.rows()]
        return f"Probe({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self.rows())
        return f"<table><thead><tr><th>probe</th><th>value</th></tr></thead><tbody>{cells}</tbody></table>"


NO_TIME, NO_COUNT = "none", "not reported"


def _ms(value: float | None) -> str:
    return NO_TIME if value is None else f"{value:,.1f} ms"


def _count(value: int | None) -> str:
    return NO_COUNT if value is None else f"{value:,}"
