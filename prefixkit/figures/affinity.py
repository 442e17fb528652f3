"""TTFT of each request of a prefix, with and without affinity to an engine."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words

SHIFT = 0.15


def by_request(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `ttft_ms` by `request` (of its prefix), one panel a number of `users`, one colour a `routing`."""
    levels = sorted(rows["users"].unique())
    with house():
        figure, axes = canvas(len(levels), height=3.3, sharey=True)
        for ax, users in zip(axes, levels, strict=True):
            here = rows[rows["users"] == users]
            for shift, routing in ((-SHIFT, "balanced"), (SHIFT, "sticky")):
                own = here[here["routing"] == routing].reset_index(drop=True)
                if own.empty:
                    continue
                places = own["request"] + shift + 0.02 * (own.index % 7 - 3)
                ax.scatter(places, own["ttft_ms"], s=16, color=COLOURS[routing], marker=MARKS[routing], alpha=0.55,
                           linewidths=0)  # fmt: skip
                means = own.groupby("request")["ttft_ms"].mean()
                ax.plot(means.index + shift, means, color=COLOURS[routing], marker="_", markersize=12, linewidth=1.4,
                        label=words(f"affinity.{routing}"))  # fmt: skip
            ax.set(xlabel=words("axis.request_of_prefix"), ylim=(0, float(rows["ttft_ms"].max()) * 1.3))
            ax.set_xticks(sorted(here["request"].unique()))
            ax.set_title(words.say("figure.affinity.users", n=f"{users}"))
            ax.grid(visible=False, axis="x")
            thousands(ax.yaxis)
        axes[0].set_ylabel(words("axis.ttft_ms"))
        axes[0].legend(loc="upper right")
    return Picture(figure, rows)
