"""The house style: arms always in the same colour and mark, colour-blind safe; SVG without dates or random ids."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from prefixkit.export.svg import draw

# Told apart with every common colour blindness, and without colour by their marks.
COLOURS = {
    "off": "#D55E00", "on": "#0072B2", "cloud": "#44AA66", "control": "#222222", "reference": "#555555",
    "predicted": "#333333", "cold": "#E69F00", "balanced": "#CC79A7", "sticky": "#117733",
}  # fmt: skip
MARKS = {"off": "o", "on": "s", "cloud": "^", "control": "D", "reference": "P", "predicted": "_", "cold": "v",
         "balanced": "X", "sticky": "p"}  # fmt: skip
WIDTH, HEIGHT = 6.3, 3.7
DPI = 200
GREY = "#5f5f5f"
AXIS_INCHES = 4.7  # of a single panel, between the first and the last mark
CHARACTER_INCHES = 0.068  # of a tick label


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with the data that it shows, one tidy table."""

    figure: Figure
    data: pd.DataFrame


@cache
def _fonts() -> list[str]:
    import pylopdf_fonts_zh_cn

    folder = Path(str(pylopdf_fonts_zh_cn.__file__)).parent
    font_manager.fontManager.addfont(str(folder / "NotoSansSC-Regular.otf"))
    return ["Noto Sans SC", "DejaVu Sans"]


@contextmanager
def house() -> Iterator[None]:
    """Draw in the house style inside this block."""
    rc = {
        **sns.axes_style("ticks"),
        "font.family": _fonts(), "font.size": 9.5, "axes.titlesize": 10.5, "axes.labelsize": 9.5,
        "axes.titlelocation": "left", "axes.titlepad": 8, "axes.spines.top": False, "axes.spines.right": False,
        "axes.edgecolor": "#444444", "axes.linewidth": 0.8, "axes.grid": True, "axes.axisbelow": True,
        "grid.color": "#e6e6e6", "grid.linewidth": 0.7, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
        "xtick.color": "#444444", "ytick.color": "#444444", "legend.frameon": False, "legend.fontsize": 8.5,
        "lines.linewidth": 1.8, "lines.markersize": 4.5, "savefig.facecolor": "white", "figure.facecolor": "white",
        "axes.unicode_minus": True, "svg.fonttype": "path", "svg.hashsalt": "prefixkit",
    }  # fmt: skip
    with matplotlib.rc_context(rc):
        yield


class HouseFigure(Figure):
    """A figure that is laid out once and whose SVG is drawn once, however often it is saved."""

    _svg: bytes | None = None

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as matplotlib does; SVG goes into a file object. The layout leaves no margin to be cut off."""
        options.pop("bbox_inches", None)
        if self.get_layout_engine() is not None:
            self.draw_without_rendering()
            self.set_layout_engine("none")
        if options.get("format") != "svg":
            super().savefig(fname, **options)
            return
        if self._svg is None:
            buffer = io.BytesIO()
            super().savefig(buffer, **options)
            self._svg = buffer.getvalue()
        fname.write(self._svg)


def canvas(columns: int = 1, *, height: float = HEIGHT, rows: int = 1, **subplots: Any) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of the article's width and its axes, row by row."""
    figure = HouseFigure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **subplots)
    return figure, [ax for row in axes for ax in row]


def thousands(axis: Axis) -> None:
    """Write an axis' numbers with a comma for thousands."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: (f"{x:,.0f}" if x == round(x) else f"{x:g}").replace("-", "−")))


def fitting(values: Sequence[float], texts: Sequence[str]) -> list[bool]:
    """Tell which labels have room at ascending `values` of a logarithmic axis; both ends always have."""
    span = math.log(values[-1] / values[0]) or 1.0
    places = [AXIS_INCHES * math.log(value / values[0]) / span for value in values]

    def clear(left: int, right: int) -> bool:
        return places[right] - places[left] >= CHARACTER_INCHES * (1 + (len(texts[left]) + len(texts[right])) / 2)

    last = len(values) - 1
    kept = {0, last}
    for i in range(last - 1, 0, -1):
        if clear(0, i) and clear(i, min(k for k in kept if k > i)):
            kept.add(i)
    return [i in kept for i in range(len(values))]


def log_lengths(ax: Axes, lengths: Sequence[float]) -> None:
    """Give the x axis a logarithmic scale with a tick at each length, labelled where there is room."""
    texts = [f"{length:,.0f}" for length in lengths]
    shown = [text if fits else "" for text, fits in zip(texts, fitting(lengths, texts), strict=True)]
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(lengths), shown)
    ax.minorticks_off()


def percents(axis: Axis) -> None:
    """Write an axis' fractions as percentages."""
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x * 100:.0f}%".replace("-", "−")))


def note(ax: Axes, x: float, y: float, text: str, colour: str = GREY, **options: Any) -> None:
    """Write a small label at data coordinates."""
    settings: dict[str, Any] = {"color": colour, "fontsize": 8.5, "va": "center", "annotation_clip": False, **options}
    ax.annotate(text, (x, y), **settings)


def save(picture: Picture, folder: Path, name: str) -> list[Path]:
    """Write NAME.svg, NAME.png and NAME.csv to `folder`; return their paths. Equal figures give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    svg, png, csv = (folder / f"{name}.{suffix}" for suffix in ("svg", "png", "csv"))
    with house():
        svg.write_text(draw(picture.figure, f"fig-{name}"), "utf-8")
        picture.figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    picture.data.to_csv(csv, index=False, lineterminator="\n")
    return [svg, png, csv]
