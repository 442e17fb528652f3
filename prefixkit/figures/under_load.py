"""TTFT under load: every request, medians joined."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words

KINDS = {"users": "axis.concurrency", "rate": "axis.rate"}


def ladder(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `ttft_ms` by `level`, one panel a `kind`, one colour an `arm`; first arrivals are hollow."""
    kinds = [kind for kind in KINDS if (rows["kind"] == kind).any()]
    with house():
        figure, axes = canvas(len(kinds), height=3.3, sharey=True)
        for ax, kind in zip(axes, kinds, strict=True):
            own = rows[rows["kind"] == kind]
            levels = sorted(own["level"].unique())
            for shift, arm in ((-0.14, "off"), (0.14, "on")):
                mine = own[own["arm"] == arm]
                if mine.empty:
                    continue
                centres, medians = [], []
                for place, level in enumerate(levels):
                    here = mine[mine["level"] == level]
                    for first, colour in ((False, COLOURS[arm]), (True, "none")):
                        part = here[here["first"] == first]["ttft_ms"]
                        x = [place + shift + 0.02 * (i % 7 - 3) for i in range(len(part))]
                        ax.scatter(x, part, s=16, marker=MARKS[arm], facecolors=colour, edgecolors=COLOURS[arm],
                                   linewidths=0.8, alpha=0.6)  # fmt: skip
                    if len(settled := here[~here["first"]]["ttft_ms"]):
                        centres.append(place + shift)
                        medians.append(float(settled.median()))
                ax.plot(centres, medians, color=COLOURS[arm], linewidth=1.6, marker="_", markersize=14,
                        label=words.arm(arm))  # fmt: skip
            ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
            ax.set(
                xlabel=words(KINDS[kind]), xlim=(-0.6, len(levels) - 0.4), ylim=(0, float(rows["ttft_ms"].max()) * 1.08)
            )
            ax.set_title(words("figure.load.closed" if kind == "users" else "figure.load.open"))
            ax.grid(visible=False, axis="x")
            thousands(ax.yaxis)
        axes[0].set_ylabel(words("axis.ttft_ms"))
        axes[0].scatter([], [], s=16, facecolors="none", edgecolors="#444444", label=words("figure.load.first"))
        axes[0].legend(loc="upper left")
    return Picture(figure, rows)
