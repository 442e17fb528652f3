"""Records of a made-up run with a known truth: lines, order, pairs, server times."""

from __future__ import annotations

from typing import Any

import numpy as np

LENGTHS = (353, 681, 1337, 2649, 3961)
QUESTION = 25


def probe(arm: str, phase: str, tokens: float | None, ttft_ms: float | None, **more: Any) -> dict[str, Any]:
    """Return a probe record of experiment `length` with the keys that `fit` needs, and `more`."""
    return {
        "record": "probe", "schema": 1, "arm": arm, "experiment": "length", "phase": phase,
        "prompt_tokens": tokens, "ttft_ms": ttft_ms, "error": None, **more,
    }  # fmt: skip


def run(
    *,
    seed: int = 0,
    rounds: int = 5,
    lengths: tuple[int, ...] = LENGTHS,
    base_ms: float = 36.0,
    off_slope: float = 207.6,
    on_slope: float = 6.9,
    noise_ms: float = 4.0,
    drift: float = 0.0,
    curve: float = 0.0,
    control_factor: float = 1.0,
    block: int = 16,
) -> list[dict[str, Any]]:
    """Return a run of arms on and off; `on_slope` is what 1,000 cached tokens cost."""
    rng = np.random.default_rng(seed)
    records: list[dict[str, Any]] = []
    for arm in ("off", "on"):
        order = 0
        visits = [(r, int(x)) for r in range(rounds) for x in rng.permutation(lengths)]
        for place, (number, tokens) in enumerate(visits):
            slow = 1 + drift * (place / max(len(visits) - 1, 1) - 0.5)
            for phase in ("cold", "warm", "control") if arm == "on" else ("cold",):
                hit = (tokens - QUESTION) // block * block if phase == "warm" else 0
                ms = base_ms + off_slope * (tokens - hit) / 1000 + on_slope * hit / 1000
                ms = slow * (ms + curve * (tokens - hit) ** 2 / 1e6) * (control_factor if phase == "control" else 1)
                ms += float(rng.normal(0, noise_ms))
                records.append(
                    probe(
                        arm, phase, tokens, ms, order=order, target_tokens=tokens - QUESTION,
                        cached_tokens=hit if arm == "on" else None, condition={"round": number}, superseded=False,
                        e2e_ms=ms, completion_tokens=1,
                    )
                )  # fmt: skip
                order += 1
    return records


def switch(
    *, seed: int = 0, saved_ms: float = 280.0, tpot_on: float = 18.0, tpot_off: float = 18.0
) -> list[dict[str, Any]]:
    """Return eight answers of 64 tokens in each arm; the first of arm on is cold."""
    rng = np.random.default_rng(seed)
    records = []
    for arm in ("on", "off"):
        for question in range(1, 9):
            warm = arm == "on" and question > 1
            ttft = 345.0 - (saved_ms if warm else 0) + float(rng.normal(0, 3))
            rate = (tpot_on if arm == "on" else tpot_off) + float(rng.normal(0, 0.05))
            records.append(
                probe(arm, "warm" if warm else "cold", 1500, ttft, experiment="switch", e2e_ms=ttft + 63 * rate,
                      completion_tokens=64, condition={"question": question, "repeat": 0})
            )  # fmt: skip
    return records
