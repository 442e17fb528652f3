"""Our requests and lines beside the published rows and their refit, on the same axes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words


def beside(
    ours: pd.DataFrame, bands: pd.DataFrame, published: pd.DataFrame, refit: pd.DataFrame, span: NDArray[np.float64],
    words: Words,
) -> Picture:  # fmt: skip
    """Draw `ours` with `bands` and `published` with `refit` on axes whose vertical one is logarithmic."""
    with house():
        figure, (ax,) = canvas(height=4.2)
        for arm in ("off", "on"):
            colour = COLOURS[arm]
            own = ours[ours["series"] == arm]
            if len(own):
                ax.scatter(own["prompt_tokens"], own["ttft_ms"], s=14, color=colour, marker=MARKS[arm], alpha=0.6,
                           label=words.say("figure.reference.ours", arm=words.arm(arm)))  # fmt: skip
            line = bands[bands["series"] == arm]
            # On a logarithmic scale a line that curves below the shortest requests would plunge.
            line = line[line["mean_ms"] > 0.7 * own["ttft_ms"].min()] if len(own) else line
            ax.fill_between(
                line["prompt_tokens"], line["low_ms"].clip(lower=1), line["high_ms"], color=colour, alpha=0.18, lw=0
            )
            ax.plot(line["prompt_tokens"], line["mean_ms"], color=colour, linewidth=1.4)
            theirs, fit = published[published["series"] == arm], refit[refit["series"] == arm]
            ax.fill_between(
                fit["prompt_tokens"], fit["low_ms"].clip(lower=1), fit["high_ms"], color=colour, alpha=0.1, lw=0
            )
            ax.plot(fit["prompt_tokens"], fit["mean_ms"], color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
            ax.scatter(theirs["prompt_tokens"], theirs["ttft_ms"], s=48, marker=MARKS["reference"], facecolors="white",
                       edgecolors=colour, linewidths=1.2, zorder=3,
                       label=words.say("figure.reference.theirs", arm=words.arm(arm)))  # fmt: skip
        ax.set_yscale("log")
        every = pd.concat([ours["ttft_ms"], published["ttft_ms"]])
        ax.set_ylim(0.7 * float(every.min()), 1.5 * float(every.max()))
        ax.set(xlabel=words("axis.prompt_tokens"), ylabel=words("axis.ttft_ms_log"), xlim=(0, float(span[1]) * 1.05))
        ax.set_title(words("figure.reference.title"))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
        thousands(ax.xaxis)
        thousands(ax.yaxis)
    data = pd.concat(
        [ours.assign(layer="request"), bands.assign(layer="line"), published.assign(layer="published"),
         refit.assign(layer="refit")], ignore_index=True,
    )  # fmt: skip
    return Picture(figure, data)
