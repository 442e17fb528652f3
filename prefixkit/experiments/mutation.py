"""One token changed at a given place of a cached prompt: everything from its block on is computed again.

Arm on, one cell a round, `mutation/r1`: the prompt cold, the same prompt again, then variants of it in random order,
each with one word replaced. Arm off: the prompt and the variants at fractions, every one `cold`. `condition` holds

- `variant`: `unchanged` or `changed`;
- `position`: the asked place as a fraction of the prompt, or the border's place; null when unchanged;
- `position_tokens`: the first token that differs from the unchanged prompt, found with the server's own tokenizer;
- `border`: `before`, `at` or `after` a block border (the first token of a block is `at`), else null;
- `predicted_cached_tokens`: block arithmetic over everything this round has sent; measured hits must equal it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prefixkit.experiments.prediction import cache_of, counted, effective
from prefixkit.experiments.session import Session
from prefixkit.lru import common_prefix
from prefixkit.params.models import Mutation
from prefixkit.prompts import Message, chat

NAME = "mutation"
_WORD = re.compile(r"[A-Za-z]+|[^\W\d_A-Za-z]")
_BORDERS_TRIED = 12


@dataclass(frozen=True, slots=True)
class Target:
    """A place at which the first differing token is wanted."""

    tokens: int
    position: float
    border: str | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """A prompt with one word replaced; `tokens` is the first token that differs."""

    messages: list[Message]
    ids: list[int]
    tokens: int
    target: Target


class Changer:
    """Replaces one word of a prompt so that the first differing token is as near as can be to a wanted one.

    Each variant gets a replacement of its own, so that two changes at one place do not find each other in the cache.
    """

    def __init__(
        self, messages: list[Message], tokenize: Callable[[list[Message]], list[int]], replacements: Sequence[str]
    ) -> None:
        self._messages = messages
        self._tokenize = tokenize
        self._replacements = replacements
        self.ids = tokenize(messages)
        self._places = [
            (index, match.span())
            for index, message in enumerate(messages)
            for match in _WORD.finditer(message["content"])
        ]
        self._known: dict[tuple[int, int], tuple[list[Message], list[int], int]] = {}
        self._variants = 0

    def change(self, target: Target) -> Variant:
        """Return the variant whose first differing token is nearest to the target."""
        number = self._variants
        self._variants += 1
        low, high = 0, len(self._places) - 1
        while low < high:
            middle = (low + high) // 2
            if self._changed(middle, number)[2] < target.tokens:
                low = middle + 1
            else:
                high = middle
        near = [i for i in (low - 1, low) if i >= 0]
        best = min(near, key=lambda i: abs(self._changed(i, number)[2] - target.tokens))
        messages, ids, tokens = self._changed(best, number)
        return Variant(messages, ids, tokens, target)

    def _changed(self, place: int, number: int) -> tuple[list[Message], list[int], int]:
        if (place, number) not in self._known:
            index, (start, end) = self._places[place]
            messages = [dict(m) for m in self._messages]
            text = messages[index]["content"]
            new = self._replacements[number % len(self._replacements)]
            new = new if text[start:end].isascii() else new[0]
            messages[index]["content"] = text[:start] + new + text[end:]
            ids = self._tokenize(messages)
            self._known[place, number] = messages, ids, common_prefix(ids, self.ids)
        return self._known[place, number]


def fractions(length: int, positions: Sequence[float]) -> list[Target]:
    """Return the targets at fractions of a prompt of `length` tokens."""
    return [Target(min(length - 1, round(length * position)), position) for position in positions]


def borders(changer: Changer, block: int) -> list[Variant]:
    """Return variants just before, at and after a block border near the middle; nothing when no border can be hit."""
    length = len(changer.ids)
    middle = length // 2 // block
    for step in range(_BORDERS_TRIED):
        border = (middle + (step + 1) // 2 * (-1) ** step) * block
        if not 0 < border < length - 1:
            continue
        wanted = [(border - 1, "before"), (border, "at"), (border + 1, "after")]
        found = [changer.change(Target(tokens, tokens / length, name)) for tokens, name in wanted]
        if all(variant.tokens == variant.target.tokens for variant in found):
            return found
    return []


def run(session: Session) -> None:
    """Measure every position in each round."""
    params = session.params.experiments.mutation
    assert params
    rounds = [number for number in range(1, params.repeats + 1) if not session.is_finished(f"{NAME}/r{number}")]
    if not rounds:
        return
    session.warm_up(NAME, params.prompt_tokens, max_tokens=params.max_tokens)
    with counted(session, NAME):
        for number in rounds:
            with session.cell(f"{NAME}/r{number}"):
                _round(session, params, number)


def _round(session: Session, params: Mutation, number: int) -> None:
    texts = session.prompts.texts
    question = texts.follow_ups[number % len(texts.follow_ups)]
    around = len(session.client.tokenize(chat(" ", question)))
    system = session.prompts.prefix(max(1, params.prompt_tokens - around))
    changer = Changer(chat(system, question), session.client.tokenize, texts.warmup_words)
    variants = [changer.change(target) for target in fractions(len(changer.ids), params.positions)]
    on = session.arm == "on"
    block = effective(session).block_size
    if on and params.block_borders and block:
        variants += borders(changer, block)
    random.Random(params.seed + number).shuffle(variants)
    cache = cache_of(session)

    def send(messages: list[Message], ids: list[int], phase: str, variant: Variant | None) -> None:
        session.probe(
            messages,
            experiment=NAME,
            phase=phase if on else "cold",
            condition={
                "round": number,
                "variant": "changed" if variant else "unchanged",
                "position": variant.target.position if variant else None,
                "position_tokens": variant.tokens if variant else None,
                "border": variant.target.border if variant else None,
                "predicted_cached_tokens": cache.request(ids) if cache else None,
            },
            target_tokens=params.prompt_tokens,
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            seed=params.seed,
        )

    base = chat(system, question)
    send(base, changer.ids, "cold", None)
    if on:
        send(base, changer.ids, "warm", None)
    for variant in variants:
        send(variant.messages, variant.ids, "warm", variant)
