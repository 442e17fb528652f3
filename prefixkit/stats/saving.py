"""From first tokens to whole answers: time per output token, and the end-to-end saving by output length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.equivalence import Equivalence, equivalence
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.ratio import mean_contrast, mean_estimate, reduction, welch_difference
from prefixkit.stats.regression import combine
from prefixkit.stats.rows import Floats, real, select

OUTPUT_TOKENS = (1, 32, 64, 512)
MIN_OUTPUT = 8
MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class Tpot:
    """Time per output token after the first: (e2e - ttft)/(n - 1), by arm, and whether the cache left it alone."""

    on: Estimate
    off: Estimate
    test: Equivalence
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Predicted off, on and saving of an answer of `output_tokens`; measured where such answers were sent."""

    output_tokens: int
    off_ms: Estimate
    on_ms: Estimate
    saved_ms: Estimate
    reduction: Estimate
    measured: Estimate


def tpot_values(records: Iterable[Mapping[str, Any]], experiment: str, arm: str) -> tuple[Floats, int]:
    """Return the TPOT of one arm's answers of at least 8 tokens, and how many could not be used."""
    probes = select(records, experiment, arm)
    values = [v for p in probes if (v := tpot(p)) is not None]
    return np.array(values, dtype=float), len(probes) - len(values)


def tpot(probe: Mapping[str, Any]) -> float | None:
    """Return one answer's time per output token in ms, None for short answers or missing times."""
    n, e2e, ttft = real(probe.get("completion_tokens")), real(probe.get("e2e_ms")), real(probe.get("ttft_ms"))
    if n is None or e2e is None or ttft is None or n < MIN_OUTPUT or e2e < ttft:
        return None
    return (e2e - ttft) / (n - 1)


def tpot_test(records: Iterable[Mapping[str, Any]], experiment: str = "switch", margin: float = MARGIN) -> Tpot:
    """Test whether on and off have the same TPOT: the cache must leave decoding unchanged."""
    records = list(records)
    (on, lost_on), (off, lost_off) = (tpot_values(records, experiment, arm) for arm in ("on", "off"))
    dropped = {f"{arm}: no TPOT": n for arm, n in (("on", lost_on), ("off", lost_off)) if n}
    test = equivalence(
        mean_contrast(on), mean_contrast(off), margin, n=len(on) + len(off), unit="ms/token",
        what="Time per output token, on against off", if_not="the arms differed in more than the cache",
    )  # fmt: skip
    return Tpot(mean_estimate(on, "ms/token"), mean_estimate(off, "ms/token"), test, dropped)


def end_to_end(
    records: Iterable[Mapping[str, Any]],
    experiment: str = "switch",
    output_tokens: tuple[int, ...] = OUTPUT_TOKENS,
) -> tuple[EndToEnd, ...]:
    """Predict the end-to-end saving of warm against off at each answer length from TTFT and one common TPOT."""
    records = list(records)
    warm, cold = select(records, experiment, "on", "warm"), select(records, experiment, "off", "cold")
    on, off = (np.array([p["ttft_ms"] for p in side], dtype=float) for side in (warm, cold))
    rates = np.concatenate([tpot_values(records, experiment, arm)[0] for arm in ("on", "off")])
    return tuple(_answer(on, off, rates, n, _measured(records, n)) for n in output_tokens)


def _answer(on: Floats, off: Floats, rates: Floats, tokens: int, measured: Estimate) -> EndToEnd:
    a, b, rate = mean_contrast(on), mean_contrast(off), mean_contrast(rates)
    n = len(on) + len(off)
    if a is None or b is None or (rate is None and tokens > 1):
        note = "Needs two or more differing TTFTs in each arm, and answers of 8 tokens or more."
        empty = missing("not-estimable", note, n=n, unit="ms")
        fraction = missing("not-estimable", note, n=n, unit="fraction")
        return EndToEnd(tokens, empty, empty, empty, fraction, measured)
    saved = b.minus(a)
    if rate is not None:
        decode = rate.scaled(float(tokens - 1))
        whole_on, whole_off = combine(a, decode, 1.0, 1.0), combine(b, decode, 1.0, 1.0)
        shared = decode.variance
    else:
        whole_on, whole_off, shared = a, b, 0.0
    method = "TTFT + (n - 1) TPOT, Fieller"
    return EndToEnd(
        tokens,
        whole_off.estimate(n=n, unit="ms", method=method),
        whole_on.estimate(n=n, unit="ms", method=method),
        saved.estimate(n=n, unit="ms", method=method),
        reduction(whole_on, whole_off, n=n, covariance=shared, df=min(whole_on.df, whole_off.df), method=method),
        measured,
    )


def _measured(records: list[Mapping[str, Any]], tokens: int) -> Estimate:
    """Return off minus on of whole answers of exactly this many tokens, where an experiment sent them to both arms."""
    for experiment in ("switch", "length", "conversation"):
        off, on = (
            np.array(
                [p["e2e_ms"] for p in select(records, experiment, arm, phase)
                 if p.get("completion_tokens") == tokens and real(p.get("e2e_ms")) is not None],
                dtype=float,
            )
            for arm, phase in (("off", "cold"), ("on", "warm"))
        )  # fmt: skip
        if len(off) and len(on):
            found = welch_difference(off, on)
            note = f"Measured in experiment {experiment}. {found.note}".strip()
            return Estimate(found.value, found.low, found.high, found.n, "ms", found.method, found.status, note)
    return missing("not-measured", f"No answers of {tokens} tokens were measured in both arms.", unit="ms")
