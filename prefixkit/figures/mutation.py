"""Cached tokens and TTFT against the place of the first differing token: a staircase of whole blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, note, thousands
from prefixkit.words import Words


def staircase(rows: pd.DataFrame, block: float | None, off_ms: float | None, words: Words) -> Picture:
    """Draw `cached_tokens` and `ttft_ms` against `place`, with block arithmetic and the off arm's mean beside."""
    changed = rows[rows["place"].notna()].sort_values("place")
    end = float(rows["prompt_tokens"].max())
    with house():
        figure, (left, right) = canvas(2, height=3.3)
        if block:
            x = np.arange(0, end + 1)
            left.plot(x, np.minimum(x, end - 1) // block * block, color=COLOURS["predicted"], linewidth=1, alpha=0.7,
                      label=words("figure.mutation.predicted"), drawstyle="steps-post")  # fmt: skip
        left.scatter(
            changed["place"], changed["predicted"], color=COLOURS["predicted"], marker="_", s=110, linewidths=1.5
        )
        left.scatter(changed["place"], changed["cached_tokens"], color=COLOURS["on"], marker=MARKS["on"], s=26,
                     zorder=3, label=words("figure.mutation.measured"))  # fmt: skip
        left.set(xlabel=words("axis.place"), ylabel=words("axis.cached_tokens"), ylim=(0, end * 1.08))
        left.set_title(words("figure.mutation.left"))
        left.legend(loc="upper left")
        thousands(left.xaxis)
        thousands(left.yaxis)
        right.scatter(changed["place"], changed["ttft_ms"], color=COLOURS["on"], marker=MARKS["on"], s=26, zorder=3)
        top = float(changed["ttft_ms"].max())
        if off_ms is not None:
            right.axhline(off_ms, color=COLOURS["off"], linewidth=1.2, linestyle=(0, (4, 2)))
            note(right, end, off_ms, words.arm("off"), COLOURS["off"], ha="right", va="bottom", xytext=(0, 3),
                 textcoords="offset points")  # fmt: skip
            top = max(top, off_ms)
        right.set(xlabel=words("axis.place"), ylabel=words("axis.ttft_ms"), ylim=(0, top * 1.15))
        right.set_title(words("figure.mutation.right"))
        thousands(right.xaxis)
        thousands(right.yaxis)
    return Picture(figure, rows)
