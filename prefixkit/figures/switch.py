"""TTFT and whole-answer time, question by question."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words


def questions(points: pd.DataFrame, words: Words) -> Picture:
    """Draw `ms` of each request against `question`, one panel a `measure` (ttft, e2e), one colour an `arm`."""
    with house():
        figure, axes = canvas(2, height=3.3, sharey=True)
        for ax, measure in zip(axes, ("ttft", "e2e"), strict=True):
            rows = points[points["measure"] == measure]
            for arm, own in rows.groupby("arm", sort=False):
                name, size = str(arm), 34 if arm == "off" else 20
                mean = own.groupby("question")["ms"].mean()
                ax.plot(mean.index, mean, color=COLOURS[name], linewidth=1.2, alpha=0.7)
                ax.scatter(own["question"], own["ms"], color=COLOURS[name], marker=MARKS[name], s=size, zorder=3,
                           label=words.arm(name))  # fmt: skip
            ax.axvspan(0.5, 1.5, color="#000000", alpha=0.05, linewidth=0)
            ax.set(xlabel=words("axis.question"), ylim=(0, float(points["ms"].max()) * 1.12), xlim=(0.5, None))
            ax.set_xticks(sorted(points["question"].unique()))
            ax.set_title(words(f"figure.switch.{measure}"))
            thousands(ax.yaxis)
        axes[0].set_ylabel(words("axis.ms"))
        axes[0].text(1.0, float(points["ms"].max()) * 1.09, words("figure.switch.first"), fontsize=8, color="#5f5f5f",
                     ha="left", va="top", rotation=0)  # fmt: skip
        axes[1].legend(loc="lower right")
    return Picture(figure, points)
