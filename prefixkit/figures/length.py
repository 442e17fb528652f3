"""TTFT against prompt length: the two lines, and what is saved at each length."""

from __future__ import annotations

import pandas as pd
import seaborn as sns

from prefixkit.figures.style import (
    COLOURS,
    MARKS,
    Picture,
    canvas,
    fitting,
    house,
    log_lengths,
    note,
    percents,
    thousands,
)
from prefixkit.words import Words


def lines(points: pd.DataFrame, bands: pd.DataFrame, words: Words, slopes: dict[str, str]) -> Picture:
    """Draw requests (`series`, `prompt_tokens`, `ttft_ms`) and lines (`mean_ms`, `low_ms`, `high_ms` instead).

    `slopes` names a series in the legend together with its slope.
    """
    with house():
        figure, (ax,) = canvas(height=4.0)
        right = float(points["prompt_tokens"].max())
        for series, rows in bands.groupby("series", sort=False):
            colour = COLOURS[str(series)]
            ax.fill_between(rows["prompt_tokens"], rows["low_ms"], rows["high_ms"], color=colour, alpha=0.18, lw=0)
            sns.lineplot(rows, x="prompt_tokens", y="mean_ms", color=colour, errorbar=None, ax=ax)
        for series, rows in points.groupby("series", sort=False):
            name = str(series)
            hollow, label = name == "control", slopes.get(name, words.arm(name))
            sns.scatterplot(
                rows, x="prompt_tokens", y="ttft_ms", s=16, marker=MARKS[name], label=label, zorder=3, ax=ax,
                facecolor="none" if hollow else COLOURS[name], edgecolor=COLOURS[name], linewidth=0.8, alpha=0.75,
            )  # fmt: skip
        ax.set(xlabel=words("axis.prompt_tokens"), ylabel=words("axis.ttft_ms"), xlim=(0, right * 1.04), ylim=(0, None))
        ax.set_title(words("figure.length.title"))
        ax.legend(loc="upper left")
        thousands(ax.xaxis)
        thousands(ax.yaxis)
    data = pd.concat([points.assign(layer="request"), bands.assign(layer="line")], ignore_index=True)
    return Picture(figure, data)


def reduction(rows: pd.DataFrame, words: Words) -> Picture:
    """Draw the TTFT reduction at each length: `prompt_tokens`, `reduction`, `low`, `high` (fractions)."""
    with house():
        figure, (ax,) = canvas(height=3.2)
        ax.axhline(0, color="#444444", linewidth=0.8)
        ax.plot(rows["prompt_tokens"], rows["reduction"], color=COLOURS["on"], linewidth=1, alpha=0.5)
        ax.vlines(rows["prompt_tokens"], rows["low"], rows["high"], color=COLOURS["on"], linewidth=2)
        ax.scatter(rows["prompt_tokens"], rows["reduction"], color=COLOURS["on"], marker=MARKS["on"], s=26, zorder=3)
        lows = rows["low"].fillna(rows["reduction"])
        texts = [f"{y * 100:.1f}%".replace("-", "−") for y in rows["reduction"]]
        fits = fitting(list(rows["prompt_tokens"]), texts)
        highs = rows["high"].fillna(rows["reduction"])
        for x, low, high, text, shown in zip(rows["prompt_tokens"], lows, highs, texts, fits, strict=True):
            # A label below this end would be struck through by the line at zero.
            above = 0.02 < low < 0.13
            y, side, shift = (high, "bottom", 6) if above else (low, "top", -6)
            if shown:
                note(ax, x, y, text, COLOURS["on"], ha="center", va=side, xytext=(0, shift), textcoords="offset points")
        bottom = min(0.0, float(lows.min())) - 0.12
        ax.set(xlabel=words("axis.prompt_tokens"), ylabel=words("axis.reduction"), ylim=(bottom, 1.05))
        ax.set_title(words("figure.reduction.title"))
        log_lengths(ax, list(rows["prompt_tokens"]))
        percents(ax.yaxis)
    return Picture(figure, rows)
