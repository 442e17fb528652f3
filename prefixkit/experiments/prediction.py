"""What the cache of the running server should give, and its comparison with what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefixkit.errors import ServerError
from prefixkit.experiments.ledger import WARMUP
from prefixkit.experiments.session import Session
from prefixkit.lru import BlockCache
from prefixkit.server import Effective


def effective(session: Session) -> Effective:
    """Return the settings of the session's server as it reports them."""
    if session.server is None:
        raise ServerError(f"arm {session.arm}: no server is attached", "open the session anew")
    return session.server.effective


def cache_of(session: Session) -> BlockCache | None:
    """Return an empty model of the server's cache; None when it has several engines or its block size is not known."""
    found = effective(session)
    off = session.arm == "off" or found.enable_prefix_caching is False
    if not off and (found.block_size is None or (found.engines or 1) > 1):
        return None
    return BlockCache(found.block_size or 1, found.kv_capacity_tokens, enabled=not off)


@contextmanager
def counted(session: Session, experiment: str, scope: str = "all", **fields: Any) -> Iterator[None]:
    """Count a stretch whose probes hold `condition.predicted_cached_tokens`; their sum is what is reconciled."""
    with session.counted(experiment, scope, **fields) as window:
        yield
        sent = [p for p in window.probes if p["phase"] != WARMUP and not p["error"]]
        predicted = [p["condition"].get("predicted_cached_tokens") for p in sent]
        if len(sent) == len(window.probes) and None not in predicted:
            window.predicted_tokens = sum(predicted)
