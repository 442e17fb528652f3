"""Prompts from a file, and what their differences mean for the cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from prefixkit.chat_text import first_date, message_text
from prefixkit.doctor.check import Check
from prefixkit.doctor.differ import Difference, Tokenize, compare
from prefixkit.errors import ParamsError
from prefixkit.lru import common_prefix

CHARS_PER_TOKEN = 4
MAX_PAIRS = 200
_REMEDY = 'give JSON lines of {"messages": [...]}, or one JSON list of messages, of requests or of texts'
Prompt = list[dict[str, Any]]


def read_prompts(path: str | Path) -> list[Prompt]:
    """Return the prompts of a file in order; raise ParamsError for one that holds none."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise ParamsError(f"{path}: cannot be read ({error.strerror})", _REMEDY) from None
    except UnicodeDecodeError:
        raise ParamsError(f"{path}: not UTF-8", "save it as UTF-8") from None
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [_line(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    prompts = [prompt for value in values for prompt in _prompts(value, path)]
    if not prompts:
        raise ParamsError(f"{path}: holds no prompt", _REMEDY)
    return prompts


def prompt_checks(
    prompts: Sequence[Prompt], tokenize: Tokenize | None, block: int | None, capacity: int | None
) -> list[Check]:
    """Return what the worst difference between consecutive prompts costs, whether all fit, and stamps of a day."""
    pairs = list(islice(pairwise(prompts), MAX_PAIRS))
    found = [(number, d) for number, (a, b) in enumerate(pairs, 1) if (d := compare(a, b)) is not None]
    found += [(n, d) for n, d in _hidden(pairs, tokenize) if n not in dict(found)]
    checks = [*_dated(prompts), *_working_set(prompts, capacity)]
    if not found:
        same = (
            f"{len(prompts)} prompts, each repeats or continues the one before"
            if pairs
            else "one prompt, none to compare"
        )
        return [Check("prompts", "ok", same), *checks]
    number, worst = max(found, key=lambda item: (item[1].rewritten, item[1].lost_chars, -item[0]))
    if tokenize is not None and worst.token is None:
        worst = compare(*pairs[number - 1], tokenize) or worst
    return [*_judge(number, worst, block), *checks]


def describe(number: int, d: Difference) -> str:
    """Return a sentence: where, in characters and tokens, and what stands there."""
    where = f"requests {number} and {number + 1} differ at character {d.char} of message {d.message + 1} ({d.role})"
    where += f", {d.char_total:,} of {d.chars:,} characters in"
    if d.token is not None and d.tokens is not None:
        where += f", token {d.token:,} of {d.tokens:,}"
    what = {"text": "other text", "the chat template": "equal text that the chat template renders differently"}
    stands = f"{where}: {what.get(d.kind, d.kind)}"
    return stands + (f" ({d.before!r} against {d.after!r})" if d.before or d.after else "")


def _judge(number: int, d: Difference, block: int | None) -> list[Check]:
    shared = d.token if d.token is not None else d.char_total // CHARS_PER_TOKEN
    lost = d.lost_tokens if d.lost_tokens is not None else d.lost_chars // CHARS_PER_TOKEN
    text = describe(number, d)
    unit = "tokens" if d.token is not None else "tokens (estimated)"
    if block is not None and shared < block and shared + lost < block:
        short = f"shared prefix ({shared:,} {unit}) < block ({block:,} tokens), even were the difference not there"
        longer = f"share at least {block + 1:,} tokens, or start the server with a smaller --block-size"
        return [Check("block-size", "failed", short, longer, 95), Check("prompts", "info", text, "", 10)]
    if d.rewritten:
        found = f"the previous assistant turn is rendered differently in the next prompt: {text}"
        remedy = "send history back exactly as it was generated (thinking blocks, blanks and tool calls included)"
        return [Check("prompts", "failed", found, remedy, 66)]
    if lost >= (block or 1) and lost > 0:
        cost = f"{text}; {lost:,} equal {unit} after it are computed again"
        remedy = (
            f"move {d.kind if d.kind != 'text' else 'what varies'} behind the stable text, to the end of the prompt"
        )
        return [Check("prompts", "failed", cost, remedy, 64)]
    return [Check("prompts", "ok", f"{text}; {shared:,} {unit} before it are shared")]


def _hidden(pairs: Sequence[tuple[Prompt, Prompt]], tokenize: Tokenize | None) -> list[tuple[int, Difference]]:
    """Compare the first growing pair in tokens, where equal text may hide a template that rewrites history."""
    if tokenize is None:
        return []
    for number, (a, b) in enumerate(pairs, 1):
        if len(b) > len(a) and compare(a, b) is None:
            difference = compare(a, b, tokenize)
            return [(number, difference)] if difference else []
    return []


def _dated(prompts: Sequence[Prompt]) -> list[Check]:
    head = prompts[0][0].get("content") if prompts and prompts[0] else None
    date = first_date(head) if isinstance(head, str) else None
    if date is None or any(not isinstance(p[0].get("content"), str) or date[1] not in p[0]["content"] for p in prompts):
        return []
    found = f"every prompt holds the date {date[1]!r} at character {date[0]}: stable today, lost at midnight"
    return [Check("date-stamp", "info", found, "move the date to the end of the prompt if that matters")]


def _working_set(prompts: Sequence[Prompt], capacity: int | None) -> list[Check]:
    """Compare the distinct text of all prompts with the KV capacity, at four characters a token."""
    if not capacity:
        return []
    texts = ["\0".join(message_text(m) for m in p) for p in prompts]
    shared = [common_prefix(a, b) for a, b in pairwise(texts)]
    tokens = (sum(map(len, texts)) - sum(shared)) // CHARS_PER_TOKEN
    if tokens <= capacity:
        return []
    found = f"working set of the prompts, about {tokens:,} tokens > KV capacity {capacity:,}: eviction before reuse"
    remedy = "more memory for the cache (--gpu-memory-utilization 0.9), or send prompts with one prefix together"
    return [Check("kv-capacity", "failed", found, remedy, 63)]


def _line(path: str | Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise ParamsError(f"{path}: line {number} is not JSON", _REMEDY) from None


def _prompts(value: Any, path: str | Path) -> list[Prompt]:
    if isinstance(value, dict):
        body = value.get("body", value)
        messages = body.get("messages") if isinstance(body, dict) else None
        if messages is None and isinstance(body, dict) and isinstance(body.get("prompt"), str):
            messages = [{"role": "user", "content": body["prompt"]}]
        return [_checked(messages, path)]
    if isinstance(value, str):
        return [[{"role": "user", "content": value}]]
    if isinstance(value, list) and value and all(isinstance(v, dict) and "role" in v for v in value):
        return [_checked(value, path)]
    if isinstance(value, list):
        return [prompt for item in value for prompt in _prompts(item, path)]
    raise ParamsError(f"{path}: {str(value)[:40]!r} is no prompt", _REMEDY)


def _checked(messages: Any, path: str | Path) -> Prompt:
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) and "role" in m for m in messages):
        raise ParamsError(f"{path}: a request without messages", _REMEDY)
    return messages
