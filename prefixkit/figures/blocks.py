"""Hits and TTFT of each block size and KV capacity."""

from __future__ import annotations

import pandas as pd

from prefixkit.figures.style import COLOURS, MARKS, Picture, canvas, house, percents, thousands
from prefixkit.words import Words


def grid(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw `cached_share` and `ttft_ms` of each request by `block_size` and `capacity_tokens`."""
    keys = sorted({(int(b), int(c)) for b, c in zip(rows["block_size"], rows["capacity_tokens"], strict=True)})
    names = [words.say("figure.blocks.setting", block=f"{b:,}", capacity=f"{c:,}") for b, c in keys]
    with house():
        figure, (left, right) = canvas(2, height=3.2)
        for ax, column in ((left, "cached_share"), (right, "ttft_ms")):
            for place, (block, capacity) in enumerate(keys):
                own = rows[(rows["block_size"] == block) & (rows["capacity_tokens"] == capacity)][column].dropna()
                spread = [place + 0.08 * (i % 5 - 2) for i in range(len(own))]
                ax.scatter(spread, own, color=COLOURS["on"], marker=MARKS["on"], s=18, alpha=0.6)
                if len(own):
                    ax.plot([place - 0.3, place + 0.3], [own.median()] * 2, color=COLOURS["on"], linewidth=2)
            ax.set_xticks(range(len(keys)), names, rotation=20 if len(keys) > 2 else 0)
            ax.grid(visible=False, axis="x")
            ax.set(xlabel=words("axis.block_setting"), xlim=(-0.6, len(keys) - 0.4))
        left.set(ylabel=words("axis.cached_share"), ylim=(0, 1.05))
        left.set_title(words("figure.blocks.left"))
        percents(left.yaxis)
        right.set(ylabel=words("axis.ttft_ms"), ylim=(0, float(rows["ttft_ms"].max()) * 1.15))
        right.set_title(words("figure.blocks.right"))
        thousands(right.yaxis)
    return Picture(figure, rows)
