"""Where a TTFT goes, as stacked bars by length; one panel an arm, each with its own scale."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prefixkit.figures.style import Picture, canvas, house, thousands
from prefixkit.words import Words

COLUMNS = {
    "engine": "#0072B2", "queue": "#E69F00", "api_server": "#56B4E9", "client_network": "#BBBBBB", "outside": "#BBBBBB",
}  # fmt: skip


def stacked(means: pd.DataFrame, parts: Sequence[str], words: Words) -> Picture:
    """Draw the mean ms of `parts` by `prompt_tokens`, one panel a `series`."""
    names = list(dict.fromkeys(means["series"]))
    with house():
        figure, axes = canvas(len(names), height=3.5)
        for ax, name in zip(axes, names, strict=True):
            own = means[means["series"] == name].sort_values("prompt_tokens")
            x, base = np.arange(len(own)), np.zeros(len(own))
            for part in parts:
                values = own[part].clip(lower=0).to_numpy(dtype=float)
                ax.bar(x, values, bottom=base, width=0.72, color=COLUMNS[part], label=words(f"part.{part}"))
                base = base + values
            ax.set_xticks(x, [f"{t:,}" for t in own["prompt_tokens"]], rotation=45 if len(own) > 5 else 0)
            ax.set(xlabel=words("axis.prompt_tokens"), ylim=(0, float(base.max()) * 1.08))
            ax.set_title(words.arm(str(name)))
            ax.grid(visible=False, axis="x")
            thousands(ax.yaxis)
        axes[0].set_ylabel(words("axis.ttft_ms"))
        axes[0].legend(loc="upper left", reverse=True)
    return Picture(figure, means)
