"""Many requests: a closed loop of users, or arrivals at given times; no request waits for the clock of another."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Unpack

from prefixkit.probe.client import Client
from prefixkit.probe.request import Options, Prompt
from prefixkit.probe.result import Probe
from prefixkit.records import iso

LEAD_S = 0.25


@dataclass(frozen=True, slots=True)
class TimedProbe:
    """A probe with its intended and its real start, in seconds since the load began.

    The real start is when the first byte left, or when the attempt was made if none ever did. In a closed loop the
    intended start is the moment at which the user was free.
    """

    probe: Probe
    intended_s: float
    started_s: float

    @property
    def late_ms(self) -> float:
        """How much later than intended the request left."""
        return (self.started_s - self.intended_s) * 1000

    @property
    def intended_at(self) -> str:
        """The intended start in UTC, ISO 8601."""
        return iso(datetime.fromisoformat(self.probe.at) - timedelta(milliseconds=self.late_ms))


def closed_loop(
    client: Client,
    requests: Sequence[Prompt],
    concurrency: int,
    *,
    headers: Sequence[Mapping[str, str] | None] = (),
    **options: Unpack[Options],
) -> list[TimedProbe]:
    """Let `concurrency` users take the requests in turn, each sending its next when its last has ended.

    Probes come back in the order of `requests`; `headers`, where given, go with each request of the same place.
    """
    if headers and len(headers) != len(requests):
        raise ValueError(f"{len(requests)} requests for {len(headers)} sets of headers")
    each: list[Options] = [{**options, "extra_headers": own} for own in headers] or [options] * len(requests)
    return client.loop.run(_closed(client, requests, concurrency, each))


def open_loop(
    client: Client, requests: Sequence[Prompt], at_s: Sequence[float], **options: Unpack[Options]
) -> list[TimedProbe]:
    """Send each request at its moment, however many are under way; probes come back in the order of `requests`.

    Each is made ready a quarter of a second ahead, the first too: the load begins that much later.
    """
    if len(requests) != len(at_s):
        raise ValueError(f"{len(requests)} requests for {len(at_s)} moments")
    return client.loop.run(_open(client, requests, at_s, options))


def poisson(count: int, rate_per_s: float, seed: int) -> list[float]:
    """Return the moments (s) of `count` arrivals of a Poisson process; the first is at 0."""
    draw = random.Random(seed)
    moments = [0.0]
    while len(moments) < count:
        moments.append(moments[-1] + draw.expovariate(rate_per_s))
    return moments[:count]


class _Clock:
    """Seconds since the load began, which it does `ahead_s` from now."""

    def __init__(self, ahead_s: float = 0.0) -> None:
        self._zero = time.perf_counter_ns() + round(ahead_s * 1e9)

    def now(self) -> float:
        return (time.perf_counter_ns() - self._zero) / 1e9

    def of(self, stamp: int) -> float:
        return (stamp - self._zero) / 1e9

    def stamp(self, moment_s: float) -> int:
        return self._zero + round(moment_s * 1e9)


async def _send(client: Client, clock: _Clock, messages: Prompt, intended_s: float, options: Options) -> TimedProbe:
    tried_s = max(clock.now(), intended_s)
    probe, start = await client.timed(messages, due=clock.stamp(intended_s), **options)
    return TimedProbe(probe, intended_s, clock.of(start) if start else tried_s)


async def _closed(
    client: Client, requests: Sequence[Prompt], concurrency: int, each: Sequence[Options]
) -> list[TimedProbe]:
    clock = _Clock()
    found: dict[int, TimedProbe] = {}
    queue: Iterator[tuple[int, Prompt]] = iter(enumerate(requests))

    async def user() -> None:
        for index, messages in queue:
            found[index] = await _send(client, clock, messages, clock.now(), each[index])

    async with asyncio.TaskGroup() as users:
        for _ in range(min(concurrency, len(requests))):
            users.create_task(user())
    return [found[index] for index in range(len(requests))]


async def _open(
    client: Client, requests: Sequence[Prompt], at_s: Sequence[float], options: Options
) -> list[TimedProbe]:
    clock = _Clock(LEAD_S)

    async def arrive(messages: Prompt, moment: float) -> TimedProbe:
        await asyncio.sleep(moment - LEAD_S - clock.now())
        return await _send(client, clock, messages, moment, options)

    async with asyncio.TaskGroup() as arrivals:
        tasks = [arrivals.create_task(arrive(m, moment)) for m, moment in zip(requests, at_s, strict=True)]
    return [task.result() for task in tasks]
