"""A Prometheus text page: what it is, which series it holds, and the values of the few that are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from prefixkit.errors import PrefixkitError

_SERIES = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?=[{ \t])")
_WHOLE_NUMBER = re.compile(r"[+-]?(?:\d+\.\d+|\d+)(?:[eE][+-]?\d{2,})?")


class MetricsError(PrefixkitError):
    """A metrics page that cannot be had or cannot be read; the message names the page and its first bytes."""


class EmptyPageError(MetricsError):
    """A body with nothing in it."""


class UnreachableError(MetricsError):
    """A page that did not come: nothing listens, no answer in time, or an HTTP error."""


@dataclass(frozen=True, slots=True)
class Page:
    """The lines of one page by series name; values are parsed only when asked for."""

    series: dict[str, list[str]]
    comments: dict[str, list[str]]
    cut_off: bool
    _parsed: dict[str, tuple[Sample, ...]] = field(default_factory=dict, repr=False)

    def samples(self, name: str) -> tuple[Sample, ...]:
        """Return the samples of exactly this series; raise MetricsError if one cannot be read."""
        if name not in self._parsed:
            text = "\n".join(self.series.get(name, ()))
            try:
                found = tuple(s for family in text_string_to_metric_families(text) for s in family.samples)
            except (ValueError, IndexError):
                line = _first_unreadable(self.series[name])
                raise MetricsError(f"the metrics page is damaged at {line[:80]!r}", "read the page again") from None
            self._parsed[name] = found
        return self._parsed[name]

    def names(self, wanted: Callable[[str], bool]) -> list[str]:
        """Return the series names that `wanted` accepts, in the page's order."""
        return [name for name in self.series if wanted(name)]

    def help(self, name: str) -> str:
        """Return the HELP text of a series, or an empty string."""
        for candidate in (name, name.removesuffix("_total")):
            for line in self.comments.get(candidate, ()):
                if line.startswith("# HELP "):
                    return line.split(None, 3)[3] if len(line.split(None, 3)) > 3 else ""
        return ""


def parse(text: str | bytes) -> Page:
    """Split a page into series; raise MetricsError for a body that is no metrics page (HTML, JSON, gzip, empty)."""
    text = _as_text(text)
    if not text.strip():
        raise EmptyPageError("the metrics page is empty", "check that the address is the engine's /metrics")
    _refuse_other_formats(text)
    series: dict[str, list[str]] = {}
    comments: dict[str, list[str]] = {}
    lines = text.split("\n")
    cut_off = _last_line_is_cut(lines)
    if cut_off:
        lines.pop()
    strange = ""
    for raw in lines:
        line = raw.strip()
        if not line:
            continue
        if line[0] == "#":
            parts = line.split(None, 3)
            if len(parts) > 2 and parts[1] in ("HELP", "TYPE"):
                comments.setdefault(parts[2], []).append(" ".join(parts))
            continue
        match = _SERIES.match(line)
        if match is None:
            strange = strange or line
            continue
        series.setdefault(match.group(), []).append(line)
    if not series:
        if strange or cut_off:
            raise MetricsError(f"this is no metrics page; it begins with {_start(text)}", _ADDRESS)
        raise EmptyPageError("the metrics page holds no series", "check that the address is the engine's /metrics")
    return Page(series, comments, cut_off)


_ADDRESS = "give the engine's own /metrics address or a file saved from it"


def describe_body(data: bytes) -> str:
    """Name what a body seems to be, with its first bytes: for messages about a page that is none."""
    if data[:2] == b"\x1f\x8b":
        return f"gzip-compressed bytes ({data[:8]!r})"
    head = data[:512].lstrip().lower()
    kind = "a body"
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        kind = "an HTML page"
    elif head.startswith((b"{", b"[")):
        kind = "JSON"
    elif b"\x00" in head:
        kind = "binary data"
    return f"{kind} that begins with {data[:60].decode('utf-8', 'replace')!r}"


def _as_text(text: str | bytes) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    if text[:2] == b"\x1f\x8b":
        raise MetricsError(f"the body is {describe_body(text)}", _GZIP)
    return text.decode("utf-8-sig", "replace")


_GZIP = "decompress it first (curl --compressed, or gunzip the file)"


def _refuse_other_formats(text: str) -> None:
    head = text[:256].lstrip()
    if head.startswith(("\x1f", "\ufffd")) or "\x00" in head:
        raise MetricsError(f"the body is compressed or binary, it begins with {_start(text)}", _GZIP)
    if head.startswith("<"):
        raise MetricsError(f"this is an HTML page, not metrics; it begins with {_start(text)}", _ADDRESS)
    if head.startswith(("{", "[")):
        raise MetricsError(f"this is JSON, not metrics; it begins with {_start(text)}", _ADDRESS)


def _start(text: str) -> str:
    return repr(" ".join(text[:120].split())[:60])


def _last_line_is_cut(lines: list[str]) -> bool:
    """Tell whether the page stops inside its last line: no newline, and no value of the page's own form there."""
    last = lines[-1].strip()
    if not last:
        return False
    if last.startswith("#"):
        return False
    if not _SERIES.match(last):
        return True
    value = last.rsplit("}", 1)[-1].split()[-1:] if "}" in last else last.split()[1:2]
    if not value or ("{" in last and "}" not in last):
        return True
    if value[0] in ("NaN", "+Inf", "-Inf"):
        return False
    if not _WHOLE_NUMBER.fullmatch(value[0]):
        return True
    others = [line.split()[-1] for line in lines[-50:-1] if line.strip() and not line.lstrip().startswith("#")]
    return "." not in value[0] and bool(others) and all("." in other for other in others)


def _first_unreadable(lines: list[str]) -> str:
    for line in lines:
        try:
            list(text_string_to_metric_families(line))
        except (ValueError, IndexError):
            return line
    return lines[0]
