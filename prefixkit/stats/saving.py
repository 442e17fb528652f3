"""From first tokens to whole answers: time per output token, and the end-to-end saving by output length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixkit.stats.equivalence import Equivalence, equivalence
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.ratio import mean_contrast, mean_estimate, paired_reduction, reduction
from prefixkit.stats.regression import combine
from prefixkit.stats.rows import Floats, condition, real, select

OUTPUT_TOKENS = (1, 32, 64, 512)
ASKED = ("question", "repeat", "output_tokens")
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
    """Off, on and saving of an answer of `output_tokens` as predicted; the saving as measured where it was."""

    output_tokens: int
    off_ms: Estimate
    on_ms: Estimate
    saved_ms: Estimate
    reduction: Estimate
    measured_ms: Estimate
    measured_reduction: Estimate


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


def question_pairs(records: Iterable[Mapping[str, Any]], experiment: str) -> list[tuple[Any, Any]]:
    """Return (off, on) probes of the same question of the same repeat, cold without the cache and warm with it.

    The first question, cold on both sides, has no partner.
    """
    records = list(records)
    sides: list[dict[tuple[float | None, ...], Any]] = []
    for arm, phase in (("off", "cold"), ("on", "warm")):
        keyed = ((tuple(real(condition(p, k)) for k in ASKED), p) for p in select(records, experiment, arm, phase))
        sides.append({key: probe for key, probe in keyed if key[0] is not None})
    off, on = sides
    return [(off[key], on[key]) for key in off if key in on]


def end_to_end(
    records: Iterable[Mapping[str, Any]],
    experiment: str = "switch",
    output_tokens: tuple[int, ...] = OUTPUT_TOKENS,
) -> tuple[EndToEnd, ...]:
    """Predict the end-to-end saving of warm against off at each answer length from TTFT and one common TPOT.

    Of questions that only one arm answered nothing enters; where questions are not recorded all requests do.
    """
    records = list(records)
    pairs = question_pairs(records, experiment)
    cold, warm = ([pair[i] for pair in pairs] for i in (0, 1))
    if not pairs:
        cold, warm = select(records, experiment, "off", "cold"), select(records, experiment, "on", "warm")
    off, on = (np.array([p["ttft_ms"] for p in side], dtype=float) for side in (cold, warm))
    rates = np.concatenate([tpot_values(records, experiment, arm)[0] for arm in ("on", "off")])
    answered = [*pairs, *question_pairs(records, "outputs")] if experiment == "switch" else pairs
    return tuple(_answer(on, off, rates, n, *_measured(answered, n)) for n in output_tokens)


def _answer(
    on: Floats, off: Floats, rates: Floats, tokens: int, measured: Estimate, measured_share: Estimate
) -> EndToEnd:
    a, b, rate = mean_contrast(on), mean_contrast(off), mean_contrast(rates)
    n = len(on) + len(off)
    if a is None or b is None or (rate is None and tokens > 1):
        note = "Needs two or more differing TTFTs in each arm, and answers of 8 tokens or more."
        empty = missing("not-estimable", note, n=n, unit="ms")
        fraction = missing("not-estimable", note, n=n, unit="fraction")
        return EndToEnd(tokens, empty, empty, empty, fraction, measured, measured_share)
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
        measured_share,
    )


def _measured(pairs: list[tuple[Any, Any]], tokens: int) -> tuple[Estimate, Estimate]:
    """Return off minus on, and 1 - on/off, of whole answers of exactly this many tokens, question by question."""
    whole = ((_whole(off, tokens), _whole(on, tokens)) for off, on in pairs)
    times = [(a, b) for a, b in whole if a is not None and b is not None]
    if not times:
        note = f"No question was answered with {tokens} tokens in both arms (`switch.outputs` asks for such answers)."
        return missing("not-measured", note, unit="ms"), missing("not-measured", note, unit="fraction")
    off, on = np.array(times, dtype=float).T
    return mean_estimate(off - on), paired_reduction(on, off)


def _whole(probe: Mapping[str, Any], tokens: int) -> float | None:
    """Return the time of a whole answer of exactly this many tokens in ms."""
    e2e = real(probe.get("e2e_ms"))
    return e2e if probe.get("completion_tokens") == tokens and e2e is not None and e2e > 0 else None
