"""The saving in a whole answer against its length, and the time per output token of both arms."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, percents, thousands
from prefixkit.words import Words


def dilution(curve: pd.DataFrame, points: pd.DataFrame, requests: pd.DataFrame, words: Words) -> Picture:
    """Draw the predicted `share` saved by output `tokens` with measured points, and `tpot_ms` of requests by `arm`."""
    with house():
        figure, (left, right) = canvas(2, height=3.3, width_ratios=(1.7, 1))
        left.fill_between(curve["tokens"], curve["low"], curve["high"], color=COLOURS["on"], alpha=0.18, linewidth=0)
        left.plot(curve["tokens"], curve["share"], color=COLOURS["on"], label=words("figure.output.predicted"))
        left.vlines(points["tokens"], points["low"].astype(float), points["high"].astype(float), color="#222222", lw=2)
        left.scatter(points["tokens"], points["share"], color="#222222", marker=MARKS["on"], s=26, zorder=3,
                     label=words("figure.output.measured"))  # fmt: skip
        left.set_xscale("log", base=2)
        left.set_xticks([1, 4, 16, 64, 256, 1024])
        left.minorticks_off()
        left.set(
            xlabel=words("axis.output_tokens"),
            ylabel=words("axis.e2e_reduction"),
            ylim=(min(0, curve["low"].min()), 1.02),
        )
        left.set_title(words("figure.output.left"))
        left.legend(loc="upper right")
        thousands(left.xaxis)
        percents(left.yaxis)
        for place, (arm, own) in enumerate(requests.groupby("arm", sort=False)):
            name = str(arm)
            right.scatter([place + 0.06 * (i % 5 - 2) for i in range(len(own))], own["tpot_ms"], s=18, alpha=0.7,
                          color=COLOURS[name], marker=MARKS[name])  # fmt: skip
            right.plot([place - 0.25, place + 0.25], [own["tpot_ms"].mean()] * 2, color=COLOURS[name], linewidth=2)
        names = [words.arm(str(a)) for a in requests["arm"].drop_duplicates()]
        right.set_xticks(range(len(names)), names)
        right.set(
            ylabel=words("axis.tpot_ms"),
            ylim=(0, float(requests["tpot_ms"].max()) * 1.25),
            xlim=(-0.6, len(names) - 0.4),
        )
        right.set_title(words("figure.output.right"))
        right.grid(visible=False, axis="x")
    data = pd.concat(
        [curve.assign(layer="predicted"), points.assign(layer="measured"), requests.assign(layer="request")],
        ignore_index=True,
    )
    return Picture(figure, data)
