"""Where consecutive prompts first differ, what stands there, and what that costs in tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prefixkit.chat_text import first_difference, kind_at, message_text, snippet
from prefixkit.lru import common_prefix

Messages = Sequence[dict[str, Any]]
Tokenize = Callable[[Messages], list[int]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two prompts.

    `message` and `char` say where in the second (both from 0), `char_total` counts from the start of all its text;
    `token`, `tokens` and `lost_tokens` are None without a tokenizer. `lost_*`: what follows and is equal again, so what
    the difference costs. `rewritten` when an earlier turn of the conversation was changed.
    """

    message: int
    role: str
    char: int
    char_total: int
    chars: int
    lost_chars: int
    kind: str
    before: str
    after: str
    rewritten: bool
    token: int | None = None
    tokens: int | None = None
    lost_tokens: int | None = None


def compare(first: Messages, second: Messages, tokenize: Tokenize | None = None) -> Difference | None:
    """Return the first difference of two prompts, or None when the second repeats or continues the first."""
    texts_a, texts_b = [message_text(m) for m in first], [message_text(m) for m in second]
    place = first_difference(first, second)
    if place is None and len(second) < len(first):
        place = len(second) - 1, len(texts_b[-1])
    ids_a, ids_b = (tokenize(first), tokenize(second)) if tokenize else (None, None)
    if place is None:
        return _hidden(first, second, texts_b, ids_a, ids_b)
    message, char = place
    a = texts_a[message] if message < len(texts_a) else ""
    b = texts_b[message] if message < len(texts_b) else ""
    kind, was, now = _what(a, b, char)
    growing = len(second) > len(first) and message < len(first) - 1
    rewritten = message < len(second) - 1 and (
        str(second[message].get("role")) == "assistant" or (growing and str(second[message].get("role")) != "system")
    )
    if "<think>" in a[max(0, char - 8) : char + 16] or "<think>" in b[max(0, char - 8) : char + 16]:
        kind, rewritten = "a thinking block", True
    tokens = _tokens(ids_a, ids_b)
    return Difference(
        message=message,
        role=str(second[message].get("role")) if message < len(second) else "",
        char=char,
        char_total=sum(len(t) for t in texts_b[:message]) + char,
        chars=sum(len(t) for t in texts_b),
        lost_chars=_common_end(
            "\0".join(texts_a), "\0".join(texts_b), sum(len(t) + 1 for t in texts_b[:message]) + char
        ),
        kind=kind,
        before=was,
        after=now,
        rewritten=rewritten,
        **tokens,
    )


def _what(a: str, b: str, char: int) -> tuple[str, str, str]:
    kind, now = kind_at(b, char)
    other, was = kind_at(a, char)
    if kind in ("text", "a number") and other not in ("text", "a number"):
        kind, now = other, snippet(b, char)
    elif kind == "text":
        was, now = snippet(a, char), snippet(b, char)
    return kind, was, now


def _common_end(a: str, b: str, start: int) -> int:
    return common_prefix(a[start:][::-1], b[start:][::-1])


def _tokens(ids_a: list[int] | None, ids_b: list[int] | None) -> dict[str, int | None]:
    if ids_a is None or ids_b is None:
        return {"token": None, "tokens": None, "lost_tokens": None}
    shared = common_prefix(ids_a, ids_b)
    lost = common_prefix(ids_a[shared:][::-1], ids_b[shared:][::-1])
    return {"token": shared, "tokens": len(ids_b), "lost_tokens": lost}


def _hidden(
    first: Messages, second: Messages, texts: list[str], ids_a: list[int] | None, ids_b: list[int] | None
) -> Difference | None:
    """Return where the tokens of a continued conversation differ although its texts do not: a rewriting template."""
    if ids_a is None or ids_b is None:
        return None
    shared = common_prefix(ids_a, ids_b)
    continues = len(second) > len(first) and str(second[len(first)].get("role")) == "assistant"
    if shared == len(ids_a) or not continues:
        return None
    tokens = _tokens(ids_a, ids_b)
    chars = sum(len(t) for t in texts)
    return Difference(
        message=len(first),
        role="assistant",
        char=0,
        char_total=sum(len(t) for t in texts[: len(first)]),
        chars=chars,
        lost_chars=0,
        kind="the chat template",
        before="",
        after="",
        rewritten=True,
        **tokens,
    )
