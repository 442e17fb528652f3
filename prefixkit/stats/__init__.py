"""Statistics: pure functions from record dicts to frozen results, every number with its interval or its reason."""

from prefixkit.stats.attribution import Attribution, attribution
from prefixkit.stats.ceiling import Ceiling, amdahl_bound, ceiling
from prefixkit.stats.compare import RunComparison, compare
from prefixkit.stats.contrast import (
    LeadingContrast,
    control_against_off,
    first_sends_against_off,
    leading_contrast,
    why_no_gain,
)
from prefixkit.stats.cost import Worth, worth
from prefixkit.stats.equivalence import Equivalence, equivalence
from prefixkit.stats.estimate import Estimate, Verdict, missing
from prefixkit.stats.line import Band, Line, fit_line
from prefixkit.stats.lines import Fit, LengthSaving, fit
from prefixkit.stats.pooled import Pooled, pooled
from prefixkit.stats.precision import Repeats, narrow_enough, repeats_needed
from prefixkit.stats.quantiles import quantile, quantile_difference, quantiles
from prefixkit.stats.ratio import mean_estimate, paired_reduction
from prefixkit.stats.reanalysis import Reanalysis, reanalyse
from prefixkit.stats.saving import EndToEnd, Tpot, end_to_end, tpot_test
from prefixkit.stats.steps import Steps, server_steps, steps
from prefixkit.stats.ttft_parts import TtftParts, ttft_parts

__all__ = [
    "Attribution",
    "Band",
    "Ceiling",
    "EndToEnd",
    "Equivalence",
    "Estimate",
    "Fit",
    "LeadingContrast",
    "LengthSaving",
    "Line",
    "Pooled",
    "Reanalysis",
    "Repeats",
    "RunComparison",
    "Steps",
    "Tpot",
    "TtftParts",
    "Verdict",
    "Worth",
    "amdahl_bound",
    "attribution",
    "ceiling",
    "compare",
    "control_against_off",
    "end_to_end",
    "equivalence",
    "first_sends_against_off",
    "fit",
    "fit_line",
    "leading_contrast",
    "mean_estimate",
    "missing",
    "narrow_enough",
    "paired_reduction",
    "pooled",
    "quantile",
    "quantile_difference",
    "quantiles",
    "reanalyse",
    "repeats_needed",
    "server_steps",
    "steps",
    "tpot_test",
    "ttft_parts",
    "why_no_gain",
    "worth",
]
