"""The forced miss against the server without the cache, in shares of the latter."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, log_lengths, percents
from prefixkit.words import Words


def differences(rows: pd.DataFrame, margin: float, words: Words) -> Picture:
    """Draw `share` (control / off - 1) with `low`, `high` at each `prompt_tokens`; the margin is a shaded band."""
    with house():
        figure, (ax,) = canvas(height=2.9)
        ax.axhspan(-margin, margin, color="#000000", alpha=0.06, linewidth=0)
        ax.axhline(0, color="#444444", linewidth=0.8)
        ax.vlines(rows["prompt_tokens"], rows["low"], rows["high"], color=COLOURS["control"], linewidth=2)
        ax.scatter(
            rows["prompt_tokens"], rows["share"], color=COLOURS["control"], marker=MARKS["control"], s=26, zorder=3
        )
        log_lengths(ax, list(rows["prompt_tokens"]))
        ends = rows[["low", "high", "share"]].abs().to_numpy()
        limit = max(1.6 * margin, 1.15 * float(pd.Series(ends.ravel()).max()))
        ax.set(xlabel=words("axis.target_tokens"), ylabel=words("axis.control_share"), ylim=(-limit, limit))
        ax.set_title(words("figure.control.title"))
        percents(ax.yaxis)
    return Picture(figure, rows)
