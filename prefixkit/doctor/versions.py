"""What a vLLM version lacks for measuring prefix caching, and how to upgrade."""

from __future__ import annotations

from prefixkit.doctor.check import Check
from prefixkit.server.versions import parse

UPGRADE = "pip install -U vllm in the server's environment (or a newer image tag), then restart; pip show vllm tells"
_LACKS = (
    ((0, 6, 6), "no --no-enable-prefix-caching, so an off server cannot be asked for"),
    ((0, 8), "caching is off by default and only a gauge tells its rate (V0 engine)"),
    ((0, 9), "counters in blocks, no cache_salt for a forced miss"),
    ((0, 9, 2), "the counters have their old gpu_ name"),
    ((0, 11, 1), "preempted requests count as hits"),
    ((0, 15), "prompt tokens are not told by source"),
    ((0, 24), "cached_tokens of 0 is reported as null"),
    ((0, 25), "no per-request metrics (queue and prefill time)"),
    ((0, 27), "scheduling retries are counted twice"),
    ((0, 33), "the stream's role chunk comes before the first token (first tokens are told apart here)"),
)


def lacks(version: str) -> list[str]:
    """Return what this version lacks, the oldest lack first; an empty list for one that cannot be read."""
    numbers = parse(version)
    if numbers is None:
        return []
    missing = [text for since, text in _LACKS if numbers < since]
    if (0, 26) <= numbers < (0, 29):
        missing.append("hybrid (Mamba) models have caching off by default (0.26 to 0.28)")
    return missing


def version_check(version: str | None) -> Check:
    """Return the version as a check; old ones are warned of, with the way to upgrade."""
    if version is None:
        return Check("version", "info", "the server does not tell a vLLM version (GET /version)", "")
    missing = lacks(version)
    numbers = parse(version)
    if not missing:
        return Check("version", "ok", f"vLLM {version}")
    old = numbers is not None and numbers < (0, 9, 2)
    return Check("version", "warning" if old else "info", f"vLLM {version} lacks: {'; '.join(missing)}", UPGRADE, 20)
