"""What each request of the user's own prompts saved."""

from __future__ import annotations

import pandas as pd
import seaborn as sns

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, percents, thousands
from prefixkit.words import Words


def savings(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `saved_ms` against `cached_tokens`, and the share of requests that saved at most so much."""
    with house():
        figure, (left, right) = canvas(2, height=3.2)
        left.axhline(0, color="#444444", linewidth=0.8)
        left.scatter(rows["cached_tokens"], rows["saved_ms"], color=COLOURS["on"], marker=MARKS["on"], s=12, alpha=0.5)
        left.set(xlabel=words("axis.cached_tokens"), ylabel=words("axis.saved_ms"))
        left.set_title(words("figure.workload.left"))
        thousands(left.xaxis)
        thousands(left.yaxis)
        sns.ecdfplot(rows, x="saved_ms", color=COLOURS["on"], ax=right)
        right.axvline(0, color="#444444", linewidth=0.8)
        right.set(xlabel=words("axis.saved_ms"), ylabel=words("axis.share_of_requests"), ylim=(0, 1.02))
        right.set_title(words("figure.workload.right"))
        thousands(right.xaxis)
        percents(right.yaxis)
    return Picture(figure, rows)
