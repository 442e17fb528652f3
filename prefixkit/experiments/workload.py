"""Your own prompts, replayed in order, once with the cache and once without.

One cell, `workload/DIGEST`, because what a request finds depends on all before it. `condition` holds `workload` (digest
of the file: an edited file is another workload), `request` (from 1), `line` (in the file), `messages` (how many),
`prompt` (hash) and `predicted_cached_tokens` (block arithmetic over the requests so far, within the server's capacity).
On arm on a request that should find something is `warm`, any other `cold`; arm off is `cold` throughout. A prompt that
the model cannot take is recorded with the error `too-long` and not sent.

Arm on also writes one record of kind `workload`: what the prompts share by arithmetic alone, the fields of
`prefixkit.workload.Analysis` (hits within the capacity and without limit, the same with the volatile part moved to the
end, the ten prefixes that matter most, the ten ways in which sharing breaks). It holds no text of the prompts unless
`report.show_prompts` is true.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from prefixkit.errors import ProbeError
from prefixkit.experiments.prediction import cache_of, counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import BlockCache
from prefixkit.params.models import Workload
from prefixkit.probe import Probe
from prefixkit.workload import Request, analyse, count_requests, read_requests
from prefixkit.workload.requests import digest, find_workload
from prefixkit.workload.volatile import Messages

NAME = "workload"
NOTE_EVERY = 1000


def run(session: Session) -> None:
    """Check the whole file, say what it shares, then replay it."""
    params = session.params.experiments.workload
    assert params
    path = find_workload(params.path)
    mark = digest(path)
    if session.is_finished(f"{NAME}/{mark}"):
        return
    count = min(count_requests(path, progress=session.progress), params.limit or 10**9)
    session.progress(f"{NAME}: {path.name}, {count:,} requests")
    if session.arm == "on":
        _analyse(session, params, path, mark)
    session.warm_up(NAME, 256, max_tokens=params.max_tokens)
    session.expect(NAME, count)
    with session.cell(f"{NAME}/{mark}"), counted(session, NAME):
        _replay(session, params, path, mark)


def _requests(params: Workload, path: Path) -> Iterator[Request]:
    return islice(read_requests(path), params.limit)


def _most_tokens(session: Session, params: Workload) -> int | None:
    longest = effective(session).max_model_len
    return None if longest is None else longest - params.max_tokens


def _tokens(session: Session, messages: Messages) -> list[int] | None:
    """Return the token ids of a request, or None when the server does not tokenize it."""
    try:
        return session.client.tokenize(messages)
    except ProbeError:
        return None


def _analyse(session: Session, params: Workload, path: Path, mark: str) -> None:
    found = effective(session)
    if found.block_size is None:
        session.progress(f"{NAME}: the server does not report its block size, so nothing is predicted")
        return

    def note(done: int) -> None:
        if done % NOTE_EVERY == 0:
            session.progress(f"{NAME}: {done:,} requests compared")

    analysis = analyse(
        lambda: _requests(params, path),
        lambda messages: _tokens(session, messages),
        block_size=found.block_size,
        capacity_tokens=found.kv_capacity_tokens,
        most_tokens=_most_tokens(session, params),
        show=session.params.report.show_prompts,
        progress=note,
    )
    session.append(NAME, experiment=NAME, workload=mark, file=path.name, **asdict(analysis))


def _replay(session: Session, params: Workload, path: Path, mark: str) -> None:
    cache, most = cache_of(session), _most_tokens(session, params)
    for number, request in enumerate(_requests(params, path), 1):
        probe, predicted = _send(session, params, request, cache, most)
        session.record(
            probe,
            experiment=NAME,
            phase="cold" if session.arm != "on" or predicted == 0 else "warm",
            condition={
                "workload": mark,
                "request": number,
                "line": request.line,
                "messages": len(request.messages),
                "prompt": _hash(request.messages),
                "predicted_cached_tokens": predicted,
            },
        )


def _send(
    session: Session, params: Workload, request: Request, cache: BlockCache | None, most: int | None
) -> tuple[Probe, int | None]:
    """Send one request unless it is too long; return its probe and what block arithmetic says of it."""
    ids = _tokens(session, request.messages)
    if ids is not None and most is not None and len(ids) > most:
        message = f"line {request.line}: {len(ids)} tokens, the model takes {most} and the answer"
        return Probe(prompt_tokens=len(ids), error={"kind": "too-long", "message": message}), None
    extra: dict[str, Any] | None = {"tools": request.tools, "tool_choice": "none"} if request.tools else None
    probe = session.client.probe(
        request.messages,
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        seed=params.seed,
        extra_body=extra,
    )
    # The template puts tools into the prompt, and the tokenizer was not shown them.
    known = cache is not None and ids is not None and extra is None and probe.error is None
    return probe, cache.request(ids) if known and cache and ids else None


def _hash(messages: Messages) -> str:
    return hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()[:12]
