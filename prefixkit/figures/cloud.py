"""TTFT of every request through the gateway, model by model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, note, thousands
from prefixkit.words import Words


def _label(name: str) -> str:
    """Return a model id fit for an axis: not too long, and no formula even where it holds dollar signs."""
    return (name if len(name) <= 28 else name[:27] + "…").replace("$", r"\$")


def models(points: pd.DataFrame, local: Mapping[str, float], words: Words) -> Picture:
    """Draw each request's `ttft_ms` by `model` with the median; `local` are the local arms' means, drawn as lines."""
    names = list(dict.fromkeys(points["model"]))
    with house():
        figure, (ax,) = canvas(height=1.5 + 0.55 * len(names))
        for row, name in enumerate(names):
            own = points[points["model"] == name]
            # A fixed spread keeps marks apart and the figure the same each time.
            spread = np.linspace(-0.18, 0.18, len(own)) if len(own) > 1 else np.zeros(1)
            ax.scatter(own["ttft_ms"], row + spread, color=COLOURS["cloud"], marker=MARKS["cloud"], s=22, alpha=0.75)
            median = float(own["ttft_ms"].median())
            ax.plot([median, median], [row - 0.32, row + 0.32], color=COLOURS["cloud"], linewidth=2)
        for arm, value in local.items():
            ax.axvline(value, color=COLOURS[arm], linewidth=1.2, linestyle=(0, (4, 2)))
            note(ax, value, -0.62, words.say("figure.cloud.local", arm=words.arm(arm)), COLOURS[arm], ha="left",
                 xytext=(3, 0), textcoords="offset points")  # fmt: skip
        ax.set_yticks(range(len(names)), [_label(n) for n in names])
        ax.set(xlabel=words("axis.ttft_ms"), xlim=(0, None), ylim=(len(names) - 0.4, -0.85))
        ax.set_title(words("figure.cloud.title"))
        ax.grid(visible=False, axis="y")
        thousands(ax.xaxis)
    return Picture(figure, points)
