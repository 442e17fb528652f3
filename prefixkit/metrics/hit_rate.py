"""The hit rate of one run: counters after minus counters before, summed over engines, then divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefixkit.metrics.cache_config import config_of
from prefixkit.metrics.engines import Key, Reading, labels_of, read, start_time
from prefixkit.metrics.families import Family, find_external, find_family, gauges
from prefixkit.metrics.missing import explain_missing, gauge_rate, router_page
from prefixkit.metrics.page import EmptyPageError, MetricsError, Page, parse
from prefixkit.metrics.result import HitRate, count

PageText = str | bytes
Pages = PageText | Sequence[PageText]


def hit_rate(before: Pages, after: Pages, *, version: str | None = None) -> HitRate:
    """Return what the prefix cache did between two readings of /metrics (a page, or a list with one page per server).

    Never raises for a bad page: `status` and `message` say what is wrong, and `hit_rate` is None wherever the rate is
    not known. `version` (of vLLM) settles the unit of a deprecated counter whose HELP text is missing.
    """
    try:
        pages_before, pages_after = _parse_all(before, "before"), _parse_all(after, "after")
    except EmptyPageError as error:
        return HitRate("empty", message=str(error))
    except MetricsError as error:
        return HitRate("wrong-page", message=str(error))
    try:
        return _between(pages_before, pages_after, version)
    except MetricsError as error:
        return HitRate("not-found", message=str(error))


def _parse_all(given: Pages, moment: str) -> list[Page]:
    texts = [given] if isinstance(given, str | bytes) else list(given)
    if not texts:
        raise EmptyPageError(f"no metrics page was given for {moment!r}", "give at least one page")
    pages = []
    for number, text in enumerate(texts, 1):
        where = moment if len(texts) == 1 else f"{moment}, page {number} of {len(texts)}"
        try:
            pages.append(parse(text))
        except MetricsError as error:
            raise type(error)(f"{where}: {error.message}", error.remedy) from None
    return pages


def _between(before: list[Page], after: list[Page], version: str | None) -> HitRate:
    config = config_of(after)
    families = [find_family(page, version) for page in after]
    family = next((f for f in families if f is not None), None)
    if family is None:
        return _without_counters(after, config.enable_prefix_caching)
    for page, own in zip(after, families, strict=True):
        relayed = own is not None and all("server" in s.labels for s in page.samples(own.queries))
        if relayed and (router := router_page(page)) is not None:
            return router
        if own is None:
            found = explain_missing(page)
            return HitRate(found.status, message=f"one of {len(after)} pages has no counters: {found.message}")
        if own.name != family.name:
            return HitRate(
                "not-found",
                message=f"the pages are of different engines: {family.name} and {own.name}; read them apart",
            )
    return _difference(before, after, family, version)


def _difference(before: list[Page], after: list[Page], family: Family, version: str | None) -> HitRate:
    config = config_of(after)
    now = read(after, family)
    total = _total(list(now.values()))
    facts: dict[str, Any] = {
        "family": family.name,
        "unit": family.unit,
        "lifetime": count(total.queries, total.hits),
        "block_size": config.block_size,
    }
    unusable = _first_reading(before, family, version)
    if unusable is not None:
        return HitRate(unusable[0], message=f"before: {unusable[1]}", **facts)
    past = read(before, family)
    reason = _restart(before, after, past, now)
    if reason:
        message = f"counters went back: {reason}; the server restarted between the readings, so this run's rate is lost"
        return HitRate("restarted", message=message, **facts)
    names = labels_of(now)
    zero = Reading(0.0, 0.0, None)
    deltas = {
        key: (r.queries - past.get(key, zero).queries, r.hits - past.get(key, zero).hits) for key, r in now.items()
    }
    queries, hits = sum(q for q, _ in deltas.values()), sum(h for _, h in deltas.values())
    facts |= {
        "queries": round(queries),
        "hits": round(hits),
        "per_engine": {names[key]: count(q, h) for key, (q, h) in deltas.items()},
        "external": _external(before, after),
    }
    return _judge(family, queries, hits, deltas, config.enable_prefix_caching, facts)


def _first_reading(before: list[Page], family: Family, version: str | None) -> tuple[str, str] | None:
    """Return status and reason when the first reading cannot be subtracted; a page with no series yet counts as 0."""
    for page in before:
        if family.in_page(page):
            continue
        other = find_family(page, version)
        if other is not None or gauges(page):
            name = other.name if other else gauges(page)[0]
            return (
                "restarted",
                f"the counters were {name} and are {family.name} now: another server or version answered",
            )
        found = explain_missing(page)
        early = found.status == "not-found" and not page.cut_off
        if not early or (not family.renamed and any("vllm" in name for name in page.series)):
            return found.status, found.message
    return None


def _judge(
    family: Family,
    queries: float,
    hits: float,
    deltas: dict[Key, tuple[float, float]],
    enabled: bool | None,
    facts: dict[str, Any],
) -> HitRate:
    if any(h > q for q, h in deltas.values()):
        message = (
            f"hits grew by {hits:.0f} and queries by {queries:.0f}: no rate can be had; the counters were read while "
            "requests ran, or one of them was reset; read both again when the server is idle"
        )
        return HitRate("restarted", message=message, **facts)
    if queries == 0:
        if enabled is False:
            return HitRate(
                "disabled", message="the server says enable_prefix_caching=False; nothing was asked", **facts
            )
        return HitRate("no-queries", message="no request asked the prefix cache between the two readings", **facts)
    rate = hits / queries
    notes = [f"{hits:.0f} of {queries:.0f} {family.unit if family.unit != 'unknown' else 'units'} hit, {rate:.1%}"]
    if enabled is False:
        notes.append("although cache_config_info says enable_prefix_caching=False")
    if family.unit == "blocks":
        notes.append("counted in blocks (vLLM before 0.9)")
    if family.unit == "unknown":
        notes.append("blocks or tokens is not said (no HELP text); the rate is the same, savings are not computed")
    if family.deprecated:
        notes.append("deprecated counter name")
    if len(deltas) > 1:
        notes.append(f"summed over {len(deltas)} engines before dividing")
        if any(q and not h for q, h in deltas.values()) and hits:
            notes.append("some engines never hit: requests with one prefix go to several engines, so route by prefix")
    if family.renamed:
        notes.append(f"renamed series: {family.queries}")
    return HitRate("renamed" if family.renamed else "ok", hit_rate=rate, message="; ".join(notes), **facts)


def _without_counters(after: list[Page], enabled: bool | None) -> HitRate:
    if any(gauges(page) for page in after):
        return gauge_rate(after, enabled)
    found = explain_missing(after[0])
    for page in after[1:]:
        other = explain_missing(page)
        found = found if found.status == "wrong-page" else other
    if enabled is False:
        return HitRate("disabled", message="the server says enable_prefix_caching=False and shows no counters")
    return found


def _restart(before: list[Page], after: list[Page], past: dict[Key, Reading], now: dict[Key, Reading]) -> str:
    names = labels_of(now.keys() | past.keys())
    for key, old in past.items():
        new = now.get(key)
        if new is None:
            return f"engine {names[key]} is gone"
        for what, was, is_ in (("queries", old.queries, new.queries), ("hits", old.hits, new.hits)):
            if is_ < was:
                return f"{what} of engine {names[key]} fell from {was:.0f} to {is_:.0f}"
        if old.created is not None and new.created is not None and new.created > old.created + 1:
            return f"the counters of engine {names[key]} were created anew"
    for old_page, new_page in zip(before, after, strict=False):
        was_started, started = start_time(old_page), start_time(new_page)
        if was_started is not None and started is not None and started > was_started + 1:
            return "the process started later than the first reading"
    return ""


def _external(before: list[Page], after: list[Page]) -> dict[str, Any] | None:
    family = find_external(after[0])
    if family is None or any(family.hits not in p.series or family.queries not in p.series for p in before + after):
        return None
    new, old = _total(list(read(after, family).values())), _total(list(read(before, family).values()))
    if new.queries < old.queries or new.hits < old.hits:
        return None
    return count(new.queries - old.queries, new.hits - old.hits)


def _total(readings: list[Reading]) -> Reading:
    return Reading(sum(r.queries for r in readings), sum(r.hits for r in readings), None)
