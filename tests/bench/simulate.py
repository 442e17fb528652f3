"""A made-up machine with a known truth, and the ways in which its times can err."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LENGTHS = np.array([353.0, 681, 1337, 2649, 3961])
TRUTH = {"off": (38.0, 207.6), "on": (35.0, 6.9)}  # intercept ms, slope ms per 1,000 tokens


def errors(regime: str, mean: Array, tokens: Array, sd: float, rng: np.random.Generator) -> Array:
    """Return the errors of one arm's requests, in the order they were sent."""
    normal = sd * rng.standard_normal(len(mean))
    time = np.linspace(-0.5, 0.5, len(mean))
    if regime.startswith("noise growing"):
        return normal * tokens / LENGTHS.mean()
    if regime.startswith("heavy"):
        return sd * rng.standard_t(3, len(mean))
    if regime.startswith("2 %"):
        return normal + (rng.random(len(mean)) < 0.02) * rng.choice([-1, 1], len(mean)) * 20 * sd
    if regime.startswith("additive"):
        return normal + 10 * sd * time
    if regime.startswith("proportional"):
        return normal + 0.4 * mean * time
    return normal
