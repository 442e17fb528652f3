"""TTFT turn by turn, one panel a kind of history."""

from __future__ import annotations

import pandas as pd
import seaborn as sns

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words


def by_turn(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `ttft_ms` against `turn`, one panel a `mode`, one colour an `arm`."""
    modes = list(dict.fromkeys(rows["mode"]))
    with house():
        figure, axes = canvas(len(modes), height=3.1, sharey=True)
        for ax, mode in zip(axes, modes, strict=True):
            own = rows[rows["mode"] == mode]
            for arm, line in own.groupby("arm", sort=False):
                name = str(arm)
                sns.lineplot(
                    line,
                    x="turn",
                    y="ttft_ms",
                    color=COLOURS[name],
                    errorbar=None,
                    legend=False,
                    lw=1.3,
                    alpha=0.8,
                    ax=ax,
                )
                ax.scatter(line["turn"], line["ttft_ms"], color=COLOURS[name], marker=MARKS[name], s=24, zorder=3,
                           alpha=0.8, label=words.arm(name))  # fmt: skip
            ax.set(xlabel=words("axis.turn"), ylabel="", ylim=(0, float(rows["ttft_ms"].max()) * 1.3))
            ax.set_xticks(sorted(own["turn"].unique()))
            ax.set_title(words(f"mode.{mode}"))
            thousands(ax.yaxis)
        axes[0].set_ylabel(words("axis.ttft_ms"))
        axes[0].legend(loc="upper left", ncols=1)
    return Picture(figure, rows)
