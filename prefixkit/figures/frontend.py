"""Cached prompts sent in several ways, as stacked bars: engine, before and after the response headers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prefixkit.figures.parts import COLUMNS
from prefixkit.figures.style import Picture, canvas, house, note, thousands
from prefixkit.words import Words


def bars(means: pd.DataFrame, parts: Sequence[str], words: Words) -> Picture:
    """Draw mean ms of `parts` for each `way`, one panel a value of `together`."""
    panels = list(dict.fromkeys(means["together"]))
    colours = dict(zip(parts, (COLUMNS["engine"], COLUMNS["api_server"], COLUMNS["client_network"]), strict=True))
    names = list(dict.fromkeys(means["way"]))
    with house():
        figure, axes = canvas(len(panels), height=1.5 + 0.36 * len(names), sharey=True)
        for ax, n in zip(axes, panels, strict=True):
            own = means[means["together"] == n].set_index("way").reindex(names)
            y, base = np.arange(len(names)), np.zeros(len(names))
            for part in parts:
                values = own[part].fillna(0).clip(lower=0).to_numpy(dtype=float)
                ax.barh(y, values, left=base, height=0.66, color=colours[part], label=words(f"frontend.part.{part}"))
                base = base + values
            for place, total in enumerate(own["ttft"]):
                if not np.isnan(total):
                    note(ax, base[place], place, f" {total:.1f}", ha="left")
            ax.set_yticks(y, names)
            ax.set(xlabel=words("axis.ttft_ms"), xlim=(0, float(base.max()) * 1.18))
            ax.set_title(words.say("figure.frontend.together", n=str(n)) if n > 1 else words("figure.frontend.alone"))
            ax.grid(visible=False, axis="y")
            thousands(ax.xaxis)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(parts))
    return Picture(figure, means)
