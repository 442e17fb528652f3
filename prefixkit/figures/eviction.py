"""Hit rate and TTFT against working set / capacity, with what an LRU of that size predicts."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, Picture, canvas, house, note, percents, thousands
from prefixkit.words import Words

SHADES = {"cyclic": ("#0072B2", "s"), "random": ("#56B4E9", "o"), "skewed": ("#009E73", "^")}


def cliff(sets: pd.DataFrame, requests: pd.DataFrame, words: Words) -> Picture:
    """Draw `hit_rate` and `predicted_rate` of `sets` and `ttft_ms` of `requests` against `load`, by `order`."""
    with house():
        figure, (left, right) = canvas(2, height=3.3)
        for order, own in sets.groupby("order", sort=False):
            colour, mark = SHADES.get(str(order), ("#222222", "D"))
            own = own.sort_values("load")
            left.plot(own["load"], own["predicted_rate"], color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
            left.scatter(own["load"], own["predicted_rate"], color=colour, marker="_", s=140, linewidths=1.5)
            left.scatter(
                own["load"], own["hit_rate"], color=colour, marker=mark, s=30, zorder=3, label=words(f"order.{order}")
            )
            mine = requests[requests["order"] == order]
            right.scatter(mine["load"], mine["ttft_ms"], color=colour, marker=mark, s=12, alpha=0.4)
            means = mine.groupby("load")["ttft_ms"].mean()
            right.plot(means.index, means, color=colour, linewidth=1.4)
        top = {left: 1.08, right: float(requests["ttft_ms"].max()) * 1.12}
        for ax in (left, right):
            ax.axvline(1, color=COLOURS["reference"], linewidth=1)
            note(ax, 1, top[ax], words("figure.eviction.capacity"), ha="left", va="top", xytext=(3, 0),
                 textcoords="offset points")  # fmt: skip
            ax.set(xlabel=words("axis.load"), ylim=(-0.03 if ax is left else 0, top[ax]))
            ax.set_xlim(0, float(sets["load"].max()) * 1.1)
        left.set_ylabel(words("axis.hit_rate"))
        left.set_title(words("figure.eviction.left"))
        left.plot(
            [], [], color=COLOURS["predicted"], linestyle=(0, (4, 2)), linewidth=1.2, label=words("figure.eviction.lru")
        )
        left.legend(loc="lower left")
        percents(left.yaxis)
        right.set_ylabel(words("axis.ttft_ms"))
        right.set_title(words("figure.eviction.right"))
        thousands(right.yaxis)
    data = pd.concat([sets.assign(layer="set"), requests.assign(layer="request")], ignore_index=True)
    return Picture(figure, data)
