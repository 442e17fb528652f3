"""Under load: TTFT quantiles and throughput by users and by arrival rate."""

from __future__ import annotations

from prefixkit.article.data import Data
from prefixkit.article.section import Context, Section
from prefixkit.claims import Claims


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the load experiment."""


def _sentences(ctx: Context) -> str:
    return ctx.say("load.none")


SECTION = Section(claim, {"load": lambda _: None}, {"load": lambda _: None}, {"load": _sentences})
