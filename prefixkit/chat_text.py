"""The texts of chat messages: where two prompts first differ, and what stands at a place: a clock, a date, an id ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from prefixkit.lru import common_prefix

_WINDOW = 48
_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_KINDS = (
    ("a UUID", re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")),
    (
        "a date with a clock",
        re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"),
    ),
    (
        "a clock",
        re.compile(
            r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b)?|\d{1,2}[时点]\d{1,2}分(?:\d{1,2}秒)?"
        ),
    ),
    (
        "a date",
        re.compile(
            r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b|\d{4}年\d{1,2}月\d{1,2}日"
            rf"|\b(?:{_DAY},? )?(?:\d{{1,2}}\.? )?{_MONTH}[a-z]*\.?(?: \d{{1,2}}(?:st|nd|rd|th)?,?)?(?: \d{{4}})?\b"
            rf"|\b{_DAY}\b"
        ),
    ),
    ("a Unix time", re.compile(r"\b1[5-9]\d{8}(?:\d{3}|\.\d+)?\b")),
    ("an e-mail address", re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b")),
    ("an id", re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{8,}\b|\b(?=\w*\d)[0-9a-fA-F]{8,}\b|\b\d{6,}\b")),
)
_NAME = re.compile(
    r"(?:\b(?:user|customer|client|employee|account|full|first|your)?\s?name(?:\s+is|\s*[:=])"
    r"|\buser\s*[:=]|\busername\s*[:=]?|\b(?:hello|hi|dear|assisting|helping|talking to|speaking with)"
    r"|用户名?[:：是]?|姓名[:：是]?|客户[:：]?)\s*[\"'“]?(?P<name>[^\n,.;。，；]{0,40})",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def message_text(message: dict[str, Any]) -> str:
    """Return a message's text, its parts joined; what is not text counts as nothing."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def first_difference(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> tuple[int, int] | None:
    """Return (message, character) where two prompts first differ, or None when one continues the other."""
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a.get("role") != b.get("role"):
            return index, 0
        text, other = message_text(a), message_text(b)
        if text != other:
            return index, common_prefix(text, other)
    return None


def kind_at(text: str, place: int) -> tuple[str, str]:
    """Return what stands at a character of a text and the words of it, or ("text", a snippet)."""
    start = max(0, place - _WINDOW)
    window, at = text[start : place + _WINDOW], place - start
    for kind, pattern in _KINDS:
        for match in pattern.finditer(window):
            if match.start() <= at < match.end() or (at == match.end() == len(window)):
                return kind, match.group()
    for match in _NAME.finditer(window):
        if match.start("name") <= at <= match.end("name"):
            return "a user name", match["name"].strip()
    for match in _NUMBER.finditer(window):
        if match.start() <= at < match.end():
            return "a number", match.group()
    return "text", snippet(text, place)


def snippet(text: str, place: int, around: int = 16) -> str:
    """Return the text around a place, on one line."""
    return " ".join(text[max(0, place - around) : place + around].split())


def first_date(text: str) -> tuple[int, str] | None:
    """Return place and words of the first date without a clock, or None: such a stamp is stable for a day."""
    date = dict(_KINDS)["a date"]
    match = next((m for m in date.finditer(text) if any(c.isdigit() for c in m.group())), None)
    return (match.start(), match.group()) if match else None
