"""Many requests: a closed loop of users, or arrivals at given times; no request waits for the clock of another."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prefixkit.probe.client import Client
from prefixkit.probe.request import Request
from prefixkit.probe.result import Probe


@dataclass(frozen=True, slots=True)
class TimedProbe:
    """A probe with its intended and its real start, in seconds after the first intended moment (0)."""

    probe: Probe
    intended_s: float
    started_s: float | None

    @property
    def late_ms(self) -> float | None:
        """How much later than intended the request's first byte left."""
        return None if self.started_s is None else (self.started_s - self.intended_s) * 1000


def closed_loop(client: Client, requests: Sequence[Request], concurrency: int) -> list[Probe]:
    """Let `concurrency` users take the requests in turn, each sending its next when its last has ended.

    Probes come back in the order of `requests`.
    """
    return client.loop.run(_closed(client, requests, concurrency))


def open_loop(client: Client, requests: Sequence[Request], at_s: Sequence[float]) -> list[TimedProbe]:
    """Send each request at its moment, however many are under way; probes come back in the order of `requests`."""
    if len(requests) != len(at_s):
        raise ValueError(f"{len(requests)} requests for {len(at_s)} moments")
    return client.loop.run(_open(client, requests, at_s))


def poisson(count: int, rate_per_s: float, seed: int) -> list[float]:
    """Return the moments (s) of `count` arrivals of a Poisson process; the first is at 0."""
    draw = random.Random(seed)
    moments = [0.0]
    while len(moments) < count:
        moments.append(moments[-1] + draw.expovariate(rate_per_s))
    return moments[:count]


async def _closed(client: Client, requests: Sequence[Request], concurrency: int) -> list[Probe]:
    probes: list[Probe | None] = [None] * len(requests)
    queue: Iterator[tuple[int, Request]] = iter(enumerate(requests))

    async def user() -> None:
        for index, request in queue:
            probes[index] = (await client.timed(request.messages, **request.options))[0]

    async with asyncio.TaskGroup() as users:
        for _ in range(min(concurrency, len(requests))):
            users.create_task(user())
    return [probe for probe in probes if probe is not None]


async def _open(client: Client, requests: Sequence[Request], at_s: Sequence[float]) -> list[TimedProbe]:
    zero = time.perf_counter_ns()

    async def send(request: Request, moment: float) -> TimedProbe:
        await asyncio.sleep(max(0.0, moment - (time.perf_counter_ns() - zero) / 1e9))
        probe, start = await client.timed(request.messages, **request.options)
        return TimedProbe(probe, moment, (start - zero) / 1e9 if start else None)

    async with asyncio.TaskGroup() as arrivals:
        tasks = [arrivals.create_task(send(r, moment)) for r, moment in zip(requests, at_s, strict=True)]
    return [task.result() for task in tasks]
