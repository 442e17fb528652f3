"""The lines of two runs in one figure."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, thousands
from prefixkit.words import Words


def two_runs(points: pd.DataFrame, bands: pd.DataFrame, words: Words) -> Picture:
    """Draw requests (`run`, `series`, `prompt_tokens`, `ttft_ms`) and lines (`mean_ms`, `low_ms`, `high_ms` instead).

    The first run is solid and filled, the second dashed and hollow.
    """
    runs = list(dict.fromkeys(points["run"]))
    with house():
        figure, (ax,) = canvas(height=4.0)
        for (run, series), rows in bands.groupby(["run", "series"], sort=False):
            colour, second = COLOURS[str(series)], run != runs[0]
            ax.fill_between(rows["prompt_tokens"], rows["low_ms"], rows["high_ms"], color=colour, alpha=0.15, lw=0)
            ax.plot(rows["prompt_tokens"], rows["mean_ms"], color=colour, linestyle="--" if second else "-")
        for (run, series), rows in points.groupby(["run", "series"], sort=False):
            name, second = str(series), run != runs[0]
            label = words.say("figure.beside.line", arm=words.arm(name), run=str(run))
            ax.scatter(rows["prompt_tokens"], rows["ttft_ms"], s=18, marker=MARKS[name], label=label, zorder=3,
                       facecolors="none" if second else COLOURS[name], edgecolors=COLOURS[name], linewidths=0.8,
                       alpha=0.75)  # fmt: skip
        right = float(points["prompt_tokens"].max())
        ax.set(xlabel=words("axis.prompt_tokens"), ylabel=words("axis.ttft_ms"), xlim=(0, right * 1.04), ylim=(0, None))
        ax.set_title(words("figure.beside.title"))
        ax.legend(loc="upper left")
        thousands(ax.xaxis)
        thousands(ax.yaxis)
    data = pd.concat([points.assign(layer="request"), bands.assign(layer="line")], ignore_index=True)
    return Picture(figure, data)
