"""Counter values by engine: which labels tell engines apart, and what one reading says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prometheus_client.samples import Sample

from prefixkit.metrics.families import Family
from prefixkit.metrics.page import MetricsError, Page

_IDENTITY = (
    "engine",
    "dp_rank",
    "WorkerId",
    "ReplicaId",
    "replica",
    "worker",
    "pod",
    "instance",
    "server",
    "model_name",
    "name",
)
Key = tuple[int, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class Reading:
    """One engine's counters at one moment, since that engine started."""

    queries: float
    hits: float
    created: float | None


def read(pages: Sequence[Page], family: Family) -> dict[Key, Reading]:
    """Return each engine's queries and hits from the pages that hold them.

    Raise MetricsError when an engine has queries but no hits: that page is not whole.
    """
    readings: dict[Key, Reading] = {}
    for number, page in enumerate(pages):
        if not family.in_page(page):
            continue
        queries = _sum_by_identity(number, page.samples(family.queries))
        hits = _sum_by_identity(number, page.samples(family.hits))
        if family.lazy and hits.keys() - queries.keys():
            readings[number, ()] = Reading(sum(queries.values()), sum(hits.values()), None)
            continue
        lost = 0 if family.lazy and not page.cut_off else len(queries.keys() - hits.keys())
        if lost:
            raise MetricsError(
                f"the metrics page is cut off: {lost} of {len(queries)} engines have queries but no hits",
                "read the whole page again",
            )
        created = _created(number, page, family)
        for key, value in queries.items():
            readings[key] = Reading(value, hits.get(key, 0.0), created.get(key))
    return readings


def labels_of(keys: Iterable[Key]) -> dict[Key, str]:
    """Return the shortest name for each engine that keeps them apart: "0", "1", or "page 2 engine 0"."""
    keys = list(keys)
    several_pages = len({number for number, _ in keys}) > 1
    names = {key: "/".join(_telling(key, keys)) or "0" for key in keys}
    if len(set(names.values())) < len(keys) or (several_pages and any(not _telling(key, keys) for key in keys)):
        return {key: f"{key[0] + 1}:{names[key]}" if several_pages else name for key, name in names.items()}
    return names


def start_time(page: Page) -> float | None:
    """Return when the process behind the page started, in Unix seconds."""
    for name in page.names(lambda n: n == "process_start_time_seconds"):
        values = page.samples(name)
        if len(values) == 1:
            return float(values[0].value)
    return None


def _telling(key: Key, keys: list[Key]) -> list[str]:
    """Return the values of the labels that differ between engines, or of the first label where none does."""
    labels = dict(key[1])
    differing = [n for n in labels if len({dict(other[1]).get(n) for other in keys}) > 1]
    chosen: list[str] = []
    for name in differing:
        chosen.append(name)
        if len({tuple(dict(other[1]).get(n) for n in chosen) for other in keys}) == len(keys):
            break
    if not chosen:
        chosen = [n for n in labels if n not in ("model_name", "name")][:1]
    return [labels[n] for n in chosen]


def _sum_by_identity(number: int, samples: Sequence[Sample]) -> dict[Key, float]:
    sums: dict[Key, float] = {}
    for sample in samples:
        if not math.isfinite(sample.value) or sample.value < 0:
            raise MetricsError(f"{sample.name} is {sample.value}, which no counter can be", "read the page again")
        key = _key(number, sample)
        sums[key] = sums.get(key, 0.0) + float(sample.value)
    return sums


def _key(number: int, sample: Sample) -> Key:
    return number, tuple((n, sample.labels[n]) for n in _IDENTITY if n in sample.labels)


def _created(number: int, page: Page, family: Family) -> dict[Key, float]:
    name = family.queries.removesuffix("_total") + "_created"
    if name not in page.series:
        return {}
    return {_key(number, s): float(s.value) for s in page.samples(name)}
