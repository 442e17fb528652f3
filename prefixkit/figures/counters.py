"""Counters of the prefix cache against the number of the request."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, note, thousands
from prefixkit.words import Words


def staircase(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw cumulative `queries` and `hits` (tokens) after each `request`, one line a `repeat`."""
    with house():
        figure, (ax,) = canvas(height=3.2)
        for _, own in rows.groupby("repeat"):
            own = own.sort_values("request")
            for column, colour, mark in (("queries", COLOURS["reference"], "o"), ("hits", COLOURS["on"], MARKS["on"])):
                ax.step([0, *own["request"]], [0, *own[column]], where="post", color=colour, linewidth=1.4)
                ax.scatter(own["request"], own[column], color=colour, marker=mark, s=24, zorder=3)
        first = rows[rows["repeat"] == rows["repeat"].min()].sort_values("request")
        end = first.iloc[-1]
        for column, colour in (("queries", COLOURS["reference"]), ("hits", COLOURS["on"])):
            note(ax, float(end["request"]), float(end[column]), words(f"figure.counters.{column}"), colour, ha="right",
                 va="bottom", xytext=(-4, 6), textcoords="offset points")  # fmt: skip
        ax.set(
            xlabel=words("axis.request"), ylabel=words("axis.tokens"), xlim=(0, None), ylim=(0, end["queries"] * 1.12)
        )
        ax.set_xticks(sorted(rows["request"].unique()))
        ax.set_title(words("figure.counters.title"))
        thousands(ax.yaxis)
    return Picture(figure, rows)
