"""What a chat completion asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

Messages = Sequence[Mapping[str, Any]]


class TokenIds(tuple[int, ...]):
    """A prompt that the client has tokenized already."""


Prompt = Messages | TokenIds


class Options(TypedDict, total=False):
    """Options of a probe; `cache_salt` and `ignore_eos` are vLLM's own and sent only when given.

    `extra_headers` go with the request beside the client's own.
    """

    max_tokens: int
    temperature: float
    seed: int | None
    cache_salt: str | None
    ignore_eos: bool
    extra_body: Mapping[str, Any] | None
    extra_headers: Mapping[str, str] | None


def body_of(max_tokens_field: str, **options: Unpack[Options]) -> dict[str, Any]:
    """Return the fields of a body beside model, messages and streaming; by default 1 token at temperature 0."""
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}; known: {', '.join(Options.__annotations__)}")
    body: dict[str, Any] = {
        max_tokens_field: options.get("max_tokens", 1),
        "temperature": options.get("temperature", 0.0),
    }
    for name in ("seed", "cache_salt"):
        if options.get(name) is not None:
            body[name] = options.get(name)
    if options.get("ignore_eos"):
        body["ignore_eos"] = True
    return {**body, **(options.get("extra_body") or {})}
