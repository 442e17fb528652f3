"""Which requests enter a statistic, and how many did not and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PHASES = {"cold", "warm", "control"}
IMPOSSIBLE = 1e9  # tokens, or ms: eleven days
UNREAL = 1e30  # no time, count or place in a run; squares stay finite below it
MAX_TARGETS = 200


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Requests of one arm and phase, in the order they were sent.

    `order` runs from -0.5 to 0.5 over the run; `length` is the index of the prompt length in ascending order;
    `cached`, `round` and `target` (the nominal length) are NaN where not recorded.
    """

    tokens: Floats
    ttft_ms: Floats
    order: Floats
    length: Ints
    cached: Floats
    round: Floats
    target: Floats
    ordered: bool = False
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Return how many requests there are."""
        return len(self.tokens)

    @property
    def lengths(self) -> int:
        """Return how many distinct prompt lengths there are."""
        return int(self.length.max()) + 1 if self.n else 0

    @property
    def repeats(self) -> Ints:
        """Return how many requests each length has."""
        return np.bincount(self.length) if self.n else np.zeros(0, dtype=np.int64)


def real(value: Any) -> float | None:
    """Return a finite number as float (numpy's too), anything else (null, text, booleans, NaN) as None."""
    if isinstance(value, bool) or not isinstance(value, (float, int, Real)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < UNREAL else None


def printable(value: object) -> str:
    """Return text from a record as one line that can be written."""
    return "".join(c if c.isprintable() else "?" for c in str(value))


def condition(probe: Mapping[str, Any], name: str) -> Any:
    """Return one field of a probe's condition, None where there is none."""
    found = probe.get("condition")
    return found.get(name) if isinstance(found, Mapping) else None


def nested(record: Mapping[str, Any], *keys: str) -> Any:
    """Return what lies under these keys, None where one of them is missing or no mapping is on the way."""
    found: Any = record
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def refusal(probe: Mapping[str, Any]) -> str | None:
    """Return why a probe must not enter, or None if it may."""
    phase = probe.get("phase")
    if probe.get("superseded"):
        return "superseded"
    if phase == "warmup":
        return "warm-up"
    if not isinstance(phase, str) or phase not in PHASES:
        return "other phase"
    if probe.get("error"):
        return "failed"
    tokens, ttft = real(probe.get("prompt_tokens")), real(probe.get("ttft_ms"))
    if tokens is None or ttft is None:
        return "missing value"
    if tokens <= 0 or ttft <= 0:
        return "not positive"
    if tokens > IMPOSSIBLE or ttft > IMPOSSIBLE:
        return "out of range"
    return None


def length_rows(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Rows]:
    """Return the requests of experiment `length` by (arm, phase); drops are counted under their own arm and phase.

    A warm-up or an unknown phase has no line of its own: it is counted under (arm, "").
    """
    kept: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    dropped: dict[tuple[str, str], Counter[str]] = {}
    for record in records:
        if record.get("record") != "probe" or record.get("experiment") != "length":
            continue
        phase = record.get("phase")
        key = (printable(record.get("arm")), phase if isinstance(phase, str) and phase in PHASES else "")
        reason = refusal(record)
        if reason is None:
            kept.setdefault(key, []).append(record)
        else:
            dropped.setdefault(key, Counter())[reason] += 1
    return {key: make_rows(kept.get(key, []), dict(dropped.get(key, {}))) for key in kept.keys() | dropped.keys()}


def make_rows(probes: list[Mapping[str, Any]], dropped: dict[str, int] | None = None) -> Rows:
    """Return usable probes as arrays, sorted by `order` where every one has its own, else as they come."""
    orders = [real(p.get("order")) for p in probes]
    ordered = len(probes) > 0 and None not in orders and len(set(orders)) == len(orders)
    if ordered:
        probes = sorted(probes, key=lambda p: float(p["order"]))
    tokens = np.array([p["prompt_tokens"] for p in probes], dtype=float)
    targets = [real(p.get("target_tokens")) for p in probes]
    rounds = [real(condition(p, "round")) for p in probes]
    return Rows(
        tokens=tokens,
        ttft_ms=np.array([p["ttft_ms"] for p in probes], dtype=float),
        order=np.linspace(-0.5, 0.5, len(probes)) if len(probes) > 1 else np.zeros(len(probes)),
        length=length_index(tokens, targets),
        cached=np.array([_or_nan(real(p.get("cached_tokens"))) for p in probes], dtype=float),
        round=np.array([_or_nan(r) for r in rounds], dtype=float),
        target=np.array([_or_nan(t) for t in targets], dtype=float),
        ordered=ordered,
        dropped=dropped or {},
    )


def length_index(tokens: Floats, targets: list[float | None] | None = None) -> Ints:
    """Number the distinct prompt lengths: by target where all have one, else lengths within 3 % or 8 tokens are one.

    Targets that gave the same length are one. Targets that say little are passed over: one that stands for lengths a
    tenth apart, or more than 200 of them.
    """
    if not len(tokens):
        return np.zeros(0, dtype=np.int64)
    if targets and None not in targets:
        known, label = np.unique(np.array(targets, dtype=float), return_inverse=True)
        of_target = [tokens[label == i] for i in range(len(known))] if len(known) <= MAX_TARGETS else []
        if of_target and all(np.ptp(own) <= max(8.0, 0.1 * own.mean()) for own in of_target):
            means = np.array([own.mean() for own in of_target])
            places = np.argsort(means, kind="stable")
            rank = np.empty(len(means), dtype=np.int64)
            rank[places] = np.cumsum(np.diff(means[places], prepend=means[places[0]]) >= 1)
            return np.asarray(rank[label])
    order = np.argsort(tokens, kind="stable")
    index = np.empty(len(tokens), dtype=np.int64)
    first, number = tokens[order[0]], 0
    for place in order:
        if tokens[place] - first > max(8.0, 0.03 * first):
            first, number = tokens[place], number + 1
        index[place] = number
    return index


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def select(
    records: Iterable[Mapping[str, Any]], experiment: str, arm: str | None = None, phase: str | None = None
) -> list[Mapping[str, Any]]:
    """Return the probes that may enter a statistic, of one experiment and, if given, arm and phase."""
    return [
        r
        for r in records
        if r.get("record") == "probe"
        and r.get("experiment") == experiment
        and (arm is None or r.get("arm") == arm)
        and (phase is None or r.get("phase") == phase)
        and refusal(r) is None
    ]


def matched_lengths(a: Rows, b: Rows) -> list[tuple[int, int, float]]:
    """Return (index in a, index in b, mean tokens) of the prompt lengths that both have, within 3 % or 8 tokens."""
    if not a.n or not b.n:
        return []
    theirs = np.array([b.tokens[b.length == j].mean() for j in range(b.lengths)])
    found = []
    for i in range(a.lengths):
        tokens = float(a.tokens[a.length == i].mean())
        j = int(np.abs(theirs - tokens).argmin())
        if abs(theirs[j] - tokens) <= max(8.0, 0.03 * tokens):
            found.append((i, j, tokens))
    return found
