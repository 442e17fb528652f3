"""What the cache is worth for a prompt of one's own: system, history, question and output tokens in, saving out."""

from __future__ import annotations

from dataclasses import dataclass

from prefixkit.stats.attribution import Attribution
from prefixkit.stats.estimate import Estimate, missing
from prefixkit.stats.regression import Contrast, combine

NOTHING = Contrast(0.0, 0.0, 1e6)


@dataclass(frozen=True, slots=True)
class Worth:
    """One turn of such a chat: cached tokens, TTFT without and with the cache, and what is saved."""

    prompt_tokens: int
    cached_tokens: int
    off_ms: Estimate
    on_ms: Estimate
    saved_ms: Estimate
    ttft_reduction: Estimate
    answer_reduction: Estimate
    note: str


def worth(
    model: Attribution, *, system: int, history: int, question: int, output: int, block: int = 16,
    tpot_ms: Estimate | None = None,
) -> Worth:  # fmt: skip
    """Predict one turn whose system prompt and history are cached, from this run's cost of a token (`attribution`).

    Hits come in whole blocks. `tpot_ms` (time per output token) is needed for answers of more than one token.
    """
    total = system + history + question
    cached = min((system + history) // block, max(total - 1, 0) // block) * block
    if model.regression is None or model.tokens_range is None:
        empty = missing(model.status, model.note, n=model.n, unit="ms")
        fraction = missing(model.status, model.note, n=model.n, unit="fraction")
        return Worth(total, cached, empty, empty, empty, fraction, fraction, model.note)
    low, high = model.tokens_range
    status, note = "ok", ""
    if not low <= total <= high:
        status, note = "extrapolated", f"{total:,} tokens are outside the measured {low:,.0f} to {high:,.0f}."
    fitted, n = model.regression, model.n
    without, given = model.row(total, 0), model.row(total - cached, cached)
    off, on, saved = fitted.at(*without), fitted.at(*given), fitted.difference(without, given)

    def told(found: Contrast) -> Estimate:
        return found.estimate(n=n, unit="ms", method=fitted.method, status=status, note=note)

    if not cached:
        nothing = f"{system + history} shared tokens are less than a block of {block}: nothing is cached."
        none = missing("no-hits", nothing, n=n, unit="ms", value=0.0)
        zero = missing("no-hits", nothing, n=n, unit="fraction", value=0.0)
        return Worth(total, 0, told(off), told(off), none, zero, zero, nothing)

    def share(rest: Contrast = NOTHING) -> Estimate:
        """Return saved / (off + rest), by the delta method: `on` and `off` come from one fit, `rest` does not."""
        whole = off.value + rest.value
        if whole <= 0:
            return missing("not-estimable", "The predicted time is not positive.", n=n, unit="fraction")
        value = saved.value / whole
        error = combine(fitted.difference(given, without, 1 - value), rest, 1.0, value)
        found = Contrast(value, error.variance / whole**2, error.df)
        return found.estimate(n=n, unit="fraction", method="delta", status=status, note=note)

    rest = _decoding(output, tpot_ms)
    none = missing("not-estimable", "The time per output token was not measured.", n=n, unit="fraction")
    answer = none if rest is None else share(rest)
    return Worth(total, cached, told(off), told(on), told(saved), share(), answer, note)


def _decoding(output: int, tpot_ms: Estimate | None) -> Contrast | None:
    """Return the time of all output tokens but the first; None where it was not measured."""
    if output <= 1:
        return NOTHING
    half = None if tpot_ms is None else tpot_ms.half_width
    if tpot_ms is None or tpot_ms.value is None or half is None:
        return None
    # A normal with the same half-width: the rate's own degrees of freedom are not kept in an estimate.
    return Contrast(tpot_ms.value, (half / 1.96) ** 2, 1e6).scaled(float(output - 1))
