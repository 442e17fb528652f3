"""How many prompts make a working set, and in what order they are asked for."""

from __future__ import annotations

import random


def prompts_for(ratio: float, capacity_tokens: int, prompt_tokens: int, block: int) -> int:
    """Return how many prompts of `prompt_tokens` fill `ratio` of a cache; each takes whole blocks. At least 2."""
    each = -(-prompt_tokens // block) * block
    return max(2, round(ratio * capacity_tokens / each))


def order(kind: str, count: int, passes: int, seed: int) -> list[int]:
    """Return the prompts to ask for after the first pass, `passes * count` of them, numbered from 0.

    `cyclic` goes round; `random` draws evenly; `skewed` draws the n-th with a weight of 1/n.
    """
    if kind == "cyclic":
        return list(range(count)) * passes
    rng = random.Random(f"{kind}/{seed}/{count}")
    weights = [1.0] * count if kind == "random" else [1 / (n + 1) for n in range(count)]
    return rng.choices(range(count), weights, k=count * passes)
