"""Counters of the prefix cache against the number of the request."""

from __future__ import annotations

from typing import Any

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, note, thousands
from prefixkit.words import Words


def staircase(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw cumulative `queries` and `hits` (tokens) after each `request`: a line for each `repeat` of `arm` on."""
    on, off = rows[rows["arm"] == "on"], rows[rows["arm"] == "off"].sort_values(["repeat", "request"])
    with house():
        figure, (ax,) = canvas(height=3.2)
        if len(off):
            style: dict[str, Any] = {"color": COLOURS["off"], "marker": MARKS["off"], "markersize": 4, "linewidth": 1}
            ax.plot(off["request"], off["queries"], **style)
            note(ax, float(off["request"].min()), 0.0, words("arm.off"), COLOURS["off"],
                 va="bottom", xytext=(4, 5), textcoords="offset points")  # fmt: skip
        for _, own in on.groupby("repeat"):
            own = own.sort_values("request")
            for column, colour, mark in (("queries", COLOURS["reference"], "o"), ("hits", COLOURS["on"], MARKS["on"])):
                ax.step([0, *own["request"]], [0, *own[column]], where="post", color=colour, linewidth=1.4)
                ax.scatter(own["request"], own[column], color=colour, marker=mark, s=24, zorder=3)
        first = on[on["repeat"] == on["repeat"].min()].sort_values("request")
        end = first.iloc[-1]
        note(ax, float(end["request"]), float(end["queries"]), words("figure.counters.queries"), COLOURS["reference"],
             ha="right", va="bottom", xytext=(-8, 5), textcoords="offset points")  # fmt: skip
        # Below the last three steps, where no line passes.
        note(ax, float(end["request"]), float(first["hits"].iloc[-min(3, len(first))]), words("figure.counters.hits"),
             COLOURS["on"], ha="right", va="top", xytext=(0, -5), textcoords="offset points")  # fmt: skip
        ax.set(
            xlabel=words("axis.request"), ylabel=words("axis.tokens"), xlim=(0, None), ylim=(0, end["queries"] * 1.12)
        )
        ax.set_xticks(sorted(on["request"].unique()))
        ax.set_title(words("figure.counters.title"))
        thousands(ax.yaxis)
    return Picture(figure, rows)
