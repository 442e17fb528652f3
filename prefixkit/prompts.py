"""Prompt texts of a wanted length, each with a head of its own so that no two share a cache block."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from prefixkit import paths
from prefixkit.params.models import Language, Text

Message = dict[str, str]
LEAD_WORDS = 4
FILLERS = (".", " a", "\n", "!")


@dataclass(frozen=True, slots=True)
class Texts:
    """The built-in texts of one language."""

    language: Language
    rules: tuple[str, ...]
    questions: tuple[str, ...]
    unit: str
    question: str
    follow_ups: tuple[str, ...]
    lead_words: tuple[str, ...]
    warmup_words: tuple[str, ...]

    @property
    def joint(self) -> str:
        """What stands between two repeats of a text."""
        return "" if self.language == "zh" else " "

    @property
    def rules_text(self) -> str:
        """The rules as one numbered paragraph."""
        return self.joint.join(f"{number}. {rule}" for number, rule in enumerate(self.rules, 1))


@cache
def texts(language: Language) -> Texts:
    """Return the built-in texts of a language."""
    data: dict[str, Any] = yaml.safe_load((paths.DATA / f"prompts.{language}.yaml").read_text("utf-8"))
    unit = data["unit"].replace(" ", "") if language == "zh" else data["unit"]
    return Texts(
        language=language,
        rules=tuple(data["rules"]),
        questions=tuple(data["questions"]),
        unit=unit.strip(),
        question=data["question"],
        follow_ups=tuple(data["follow_ups"]),
        lead_words=tuple(data["lead_words"].split()),
        warmup_words=tuple(data["warmup_words"].split()),
    )


def given_text(given: Text | None, default: str) -> str:
    """Return the user's text, or the built-in one."""
    return default if given is None or given.text is None else given.text.strip()


def given_lines(given: Text | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return the user's text as its lines without blank ones, or the built-in lines."""
    if given is None or given.text is None:
        return default
    return tuple(line.strip() for line in given.text.splitlines() if line.strip())


def chat(system: str, question: str) -> list[Message]:
    """Return the messages of one question behind a system prompt."""
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]


class Prompts:
    """Build texts of exactly so many tokens, as `count` counts them.

    `nonce` differs in every run: a second run must not find the first one's texts in a server that is still warm.
    """

    def __init__(self, count: Callable[[str], int], language: Language, *, seed: int = 0, nonce: str = "") -> None:
        self.texts = texts(language)
        self._count = count
        self._random = random.Random(f"{seed}/{nonce}")
        self._leads: set[str] = set()
        self._cuts: dict[tuple[str, int], int] = {}

    def lead(self) -> str:
        """Return a head that no other text of this run has."""
        while True:
            words = self._random.sample(self.texts.lead_words, LEAD_WORDS)
            lead = self.texts.joint.join(words)
            if lead not in self._leads:
                self._leads.add(lead)
                return lead + self.texts.joint

    def prefix(self, tokens: int, unit: str | None = None) -> str:
        """Return a new text of `tokens` tokens: a head of its own, then `unit` repeated and cut."""
        return self._fill(self.lead(), unit or self.texts.unit, tokens)

    def warmup(self, tokens: int) -> str:
        """Return a text of about `tokens` tokens made of words that no measured text uses."""
        words = self._random.choices(self.texts.warmup_words, k=max(1, tokens))
        return self._fill("", self.texts.joint.join(words), tokens, exact=False)

    def repeated(self, unit: str, repeats: int) -> str:
        """Return a new text: a head of its own, then `unit` so often."""
        return self.lead() + self.texts.joint.join([unit] * repeats)

    def _fill(self, lead: str, unit: str, tokens: int, *, exact: bool = True) -> str:
        piece = unit + self.texts.joint
        body = piece * (1 + 4 * tokens // len(piece))
        while (most := self._count(lead + body)) < tokens:
            body += body
        text = lead + body[: self._cut(lead, body, tokens, most, unit)]
        return self._padded(text, tokens) if exact else text

    def _cut(self, lead: str, body: str, tokens: int, most: int, unit: str) -> int:
        """Return how many characters of `body` (`most` tokens with `lead`) give `tokens`, or the most that stay below.

        Tokens grow almost evenly with characters, so interpolation needs fewer counts than halving.
        """
        key = (unit, tokens)
        low, low_tokens, high, high_tokens = 0, 0, len(body), most
        guess = self._cuts.get(key, len(body) * tokens // most)
        while high - low > 1:
            guess = min(max(guess, low + 1), high - 1)
            found = self._count(lead + body[:guess])
            if found == tokens:
                low = guess
                break
            if found < tokens:
                low, low_tokens = guess, found
            else:
                high, high_tokens = guess, found
            guess = low + (high - low) * (tokens - low_tokens) // max(1, high_tokens - low_tokens)
        self._cuts[key] = low
        return low

    def _padded(self, text: str, tokens: int) -> str:
        # A character can be several tokens, so the cut may fall short by a few.
        for _ in range(8):
            missing = tokens - self._count(text)
            if missing <= 0:
                break
            text = next((text + f for f in FILLERS if self._count(text + f) <= tokens), text)
        return text
