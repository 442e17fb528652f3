"""From a stamped answer to a probe: what counts, what to warn of, what failed."""

from __future__ import annotations

from typing import Any

from prefixkit.probe.failures import Context, body_failure, failure, server_text, without_choices
from prefixkit.probe.reading import Reading
from prefixkit.probe.result import Probe

BURST_SHARE = 0.02
BURST_MS_PER_DELTA = 0.25
BURST_DELTAS = 4
BATCHED_RATIO = 0.5

_SERVER_TIMES = {
    "queue_ms": "queue_time_ms",
    "ttft_ms": "time_to_first_token_ms",
    "generation_ms": "generation_time_ms",
    "itl_ms": "mean_itl_ms",
}


def probe_of(
    reading: Reading,
    context: Context,
    *,
    attempt: int = 1,
    error: dict[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Probe:
    """Turn a reading into a Probe; `error` is what went wrong below or beside the stream, if anything did."""
    usage = reading.usage or {}
    completion = _count(usage.get("completion_tokens"))
    first, hidden = reading.first_token, False
    if not first and completion == 1 and reading.finish_reason in ("length", "stop"):
        first, hidden = reading.finish, True
    error = error or _stream_error(reading, context, first)
    warnings = [*notes, *(_warnings(reading, completion, hidden) if error is None else ())]
    return Probe(
        ttft_ms=_ms(reading, first),
        content_ms=_ms(reading, reading.first_content),
        e2e_ms=_ms(reading, reading.end),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=_cached(usage),
        completion_tokens=completion,
        timings=_timings(reading),
        server=_server(reading.metrics),
        attempt=attempt,
        warnings=tuple(warnings),
        error=error,
        text=reading.text,
        at=reading.at,
    )


def _stream_error(reading: Reading, context: Context, first: int) -> dict[str, str] | None:
    if reading.error is not None:
        if reading.error.get("choices", ()) is None:
            return without_choices(reading.error, context)
        return failure(
            "error_in_stream",
            f"the server reported an error inside its stream: {server_text(reading.error)}",
            "see the server's log; a prompt longer than the context does this too",
        )
    if not reading.events and not reading.done and reading.body.strip():
        return body_failure(reading.body, reading.content_type, context)
    if reading.without_choices is not None and not first:
        return without_choices(reading.without_choices, context)
    if reading.not_json is not None and not first:
        text = reading.not_json.decode("utf-8", "replace")
        return failure("bad_response", f"the stream holds an event that is not JSON: {text!r}")
    if not reading.done and reading.finish_reason is None:
        return failure(
            "truncated",
            f"the stream ended after {reading.deltas} deltas without a finish reason and without [DONE]",
            "see the server's log, or a proxy's time limit",
        )
    if not first:
        return failure(
            "no_token",
            f"the stream ended (finish reason {reading.finish_reason}) without a single token",
            "ask for more tokens, or see whether the prompt makes the model stop at once",
        )
    return None


def _warnings(reading: Reading, completion: int | None, hidden: bool) -> list[str]:
    found = []
    if hidden:
        found.append(
            "the one token has no text (part of a character, or the end of the text); its chunk's arrival is taken"
        )
    spread_ms = (reading.last_token - reading.first_token) / 1e6
    ttft_ms = (reading.first_token - reading.start) / 1e6
    burst = spread_ms < BURST_SHARE * ttft_ms and spread_ms < BURST_MS_PER_DELTA * (reading.deltas - 1)
    if reading.deltas >= BURST_DELTAS and burst:
        found.append(
            "all content arrived in one burst (TTFT is about the total): buffered or synthetic stream;"
            " TTFT not comparable"
        )
    if completion and reading.deltas and reading.deltas / completion < BATCHED_RATIO:
        found.append(
            f"{reading.deltas} deltas for {completion} tokens: the server batches its stream, so TTFT may be late;"
            " compare vllm:time_to_first_token_seconds"
        )
    if reading.keepalives:
        found.append(f"the server sent {reading.keepalives} keep-alives before the first token")
    if reading.usage is None:
        found.append("usage missing: the server did not say how many tokens the prompt has")
    elif _count(reading.usage.get("prompt_tokens")) is None:
        found.append("usage has no prompt_tokens")
    if reading.not_json is not None:
        found.append("an event of the stream was not JSON and was left out")
    return found


def _timings(reading: Reading) -> dict[str, float]:
    stamps = {
        "headers": reading.head,
        "first_byte": reading.first_byte,
        "role": reading.role,
        "first_token": reading.first_token,
        "first_content": reading.first_content,
        "last_token": reading.last_token,
        "end": reading.end,
    }
    if not reading.start:
        return {}
    times = {name: ms for name, stamp in stamps.items() if (ms := _ms(reading, stamp)) is not None}
    return {"connect": round(reading.connect_ms, 4), **times}


def _ms(reading: Reading, stamp: int) -> float | None:
    return round((stamp - reading.start) / 1e6, 4) if stamp and reading.start else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _cached(usage: dict[str, Any]) -> int | None:
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return cached if cached is not None else _count(usage.get("prompt_cache_hit_tokens"))


def _server(metrics: dict[str, Any] | None) -> dict[str, float] | None:
    if metrics is None:
        return None
    times = {
        ours: metrics[theirs] for ours, theirs in _SERVER_TIMES.items() if isinstance(metrics.get(theirs), int | float)
    }
    return {name: float(value) for name, value in times.items()} or None
