"""The engine's time for an uncached prompt beside what the device could do it in at best."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, percents, thousands
from prefixkit.words import Words


def shares(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `engine_ms` and `limit_ms` by `prompt_tokens`, and beside them the `share` of the limit."""
    with house():
        figure, (left, right) = canvas(2, height=3.3)
        x = rows["prompt_tokens"]
        left.plot(x, rows["limit_ms"], color="#222222", linestyle=(0, (4, 2)), label=words("limit.limit"))
        left.plot(x, rows["engine_ms"], color=COLOURS["off"], marker=MARKS["off"], label=words("limit.engine"))
        left.set(xlabel=words("axis.prompt_tokens"), ylabel=words("axis.ms"), xlim=(0, None), ylim=(0, None))
        left.set_title(words("figure.limit.left"))
        left.legend(loc="upper left")
        right.plot(x, rows["share"], color=COLOURS["off"], marker=MARKS["off"])
        right.set_xscale("log", base=2)
        right.set_xticks([v for v in (64, 256, 1024, 4096, 16384) if x.min() <= v <= x.max()])
        right.minorticks_off()
        right.set(xlabel=words("axis.prompt_tokens"), ylim=(0, 1.02))
        right.set_title(words("figure.limit.right"))
        for axis in (left.xaxis, left.yaxis, right.xaxis):
            thousands(axis)
        percents(right.yaxis)
    return Picture(figure, rows)
