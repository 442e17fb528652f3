"""What the cloud arm is going to send, sized by characters, and what of it a budget of prompt tokens allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prefixkit.params.models import Experiments, Language
from prefixkit.prompts import given_lines, texts

# Characters of a token: the text is sized with the usual figure, its cost estimated with a cautious one.
CHARS_PER_TOKEN: dict[Language, float] = {"en": 4.4, "zh": 1.5}
CAUTIOUS_CHARS_PER_TOKEN: dict[Language, float] = {"en": 3.8, "zh": 0.9}
QUESTION_TOKENS = 40
WARM_REPEATS = 5
DEFAULT_SYSTEM_TOKENS = 1488


@dataclass(frozen=True, slots=True)
class Plan:
    """One model's requests: `questions` behind one system prompt, then each length cold and `repeats` times warm."""

    language: Language
    system_tokens: int
    questions: int
    lengths: tuple[int, ...]
    repeats: int

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return self.questions + len(self.lengths) * (1 + self.repeats)

    @property
    def prompt_tokens(self) -> int:
        """A cautious estimate of their prompt tokens."""
        switch = self.questions * self.cost(self.system_tokens)
        return switch + sum((1 + self.repeats) * self.cost(length) for length in self.lengths)

    def cost(self, tokens: int) -> int:
        """Return the cautious estimate of one request whose shared part is sized for `tokens`."""
        ratio = CHARS_PER_TOKEN[self.language] / CAUTIOUS_CHARS_PER_TOKEN[self.language]
        return round(tokens * ratio) + QUESTION_TOKENS


def wanted(experiments: Experiments) -> Plan:
    """Return what is sent where nothing limits it: `switch` and the shortest and longest length."""
    switch, length = experiments.switch, experiments.length
    questions = len(given_lines(switch.questions, texts(experiments.language).questions)) if switch else 0
    lengths = tuple(sorted({min(length.lengths), max(length.lengths)})) if length else ()
    repeats = min(WARM_REPEATS, length.repeats) if length else 0
    system = (switch.system_tokens or DEFAULT_SYSTEM_TOKENS) if switch else 0
    return Plan(experiments.language, system, questions, lengths, repeats)


def within(plan: Plan, budget: int) -> Plan | None:
    """Return as much of a plan as `budget` prompt tokens allow: fewer repeats, then fewer lengths, or None."""
    while plan.prompt_tokens > budget:
        if plan.repeats > 1 and plan.lengths:
            plan = replace(plan, repeats=plan.repeats - 1)
        elif plan.lengths:
            plan = replace(plan, lengths=plan.lengths[:-1])
        elif plan.questions > 2:
            plan = replace(plan, questions=plan.questions - 1)
        else:
            return None
    return plan
