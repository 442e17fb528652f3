"""What the client itself adds to a TTFT, as each arm measured it against a server of known delay."""

from __future__ import annotations

from prefixkit.article.data import ORDER, Data
from prefixkit.article.section import Context, Section
from prefixkit.claims import Claims
from prefixkit.records import Record


def _points(data: Data, arm: str) -> list[Record]:
    """Return an arm's calibrations, the last of each size and concurrency, the least first."""
    found = {(r["concurrency"], r["prompt_bytes"]): r for r in data.arm(arm).of("calibration")}
    return [found[key] for key in sorted(found)]


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the client's own share; none where it was not measured."""
    every = []
    for arm in ORDER:
        for i, point in enumerate(_points(data, arm), 1):
            every.append(point)
            source = f"{arm}: calibration, {point['prompt_bytes']} bytes, {point['concurrency']} at once"
            for name in ("prompt_bytes", "concurrency"):
                claims.add(f"client_{arm}_{i}_{name}", point[name], "count", source=source)
            for name in ("overhead_p50_ms", "overhead_p99_ms", "ttft_p50_ms"):
                claims.add(f"client_{arm}_{i}_{name}", point[name], "ms", source=source)
    if not every:
        return
    _summary(claims, "client_overhead", [p for p in every if p["concurrency"] == 1])
    together = max(p["concurrency"] for p in every)
    if together > 1:
        claims.add("client_together", together, "count", source="all arms: calibration, most at once")
        _summary(claims, "client_together_overhead", [p for p in every if p["concurrency"] == together])


def _summary(claims: Claims, name: str, points: list[Record]) -> None:
    """Claim the calibration with the largest median."""
    if points:
        worst = max(points, key=lambda p: float(p["overhead_p50_ms"]))
        source = f"{worst['arm']}: calibration, {worst['prompt_bytes']} bytes, {worst['concurrency']} at once"
        claims.add(f"{name}_p50_ms", worst["overhead_p50_ms"], "ms", source=source)
        claims.add(f"{name}_p99_ms", worst["overhead_p99_ms"], "ms", source=source)
        claims.add(f"{name}_prompt_bytes", worst["prompt_bytes"], "count", source=source)


def limits(ctx: Context) -> list[str]:
    """Say what the client added, and where it was the bottleneck."""
    said = [
        ctx.say(f"client.{name}")
        for name in ("overhead", "together_overhead")
        if ctx.has(f"client_{name}_p50_ms")
    ]  # fmt: skip
    slow = [
        ctx.say("client.point", arm=ctx.words.arm(arm), **{
            name: ctx.cell(f"client_{arm}_{i}_{name}")
            for name in ("prompt_bytes", "concurrency", "overhead_p50_ms", "ttft_p50_ms")
        })
        for arm in ORDER
        for i, point in enumerate(_points(ctx.data, arm), 1)
        if point["bottleneck"]
    ]  # fmt: skip
    if slow:
        said.append(ctx.say("client.bottleneck", points="; ".join(slow)))
    return said or [ctx.say("client.none")]


SECTION = Section(claim)
