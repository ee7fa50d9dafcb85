"""The report's figures as SVG text, which a page embeds. No window, no global state."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

RUN, BASELINE, DARK = "#2563eb", "#9aa3af", "#374151"
PALETTE = (RUN, "#e08a1e", "#0f9d76", "#b83280", "#6d5bd0", "#c0392b", "#0e7c99", "#7a6a53")
HEADERS, UNDELIVERED = "#bfd3fb", "#f2b8ae"
_GRID, _TEXT = "#e5e7eb", "#4b5563"
_KINDS = {
    "drop, up": "#c0392b",
    "drop, down": "#ee9d8f",
    "leave out, up": "#6d5bd0",
    "delay, up": "#0e7c99",
    "delay, down": "#8fcbd9",
    "corrupt, up": "#b5651d",
    "corrupt, down": "#e3b98c",
    "duplicate, up": "#4d7c0f",
    "duplicate, down": "#b4d08a",
}
_LEAST_PERCENT = 0.02  # of a percent axis, so that noise does not fill it
_MAX_COLUMNS = 240  # of a heat map; more rounds share columns

Curve = tuple[str, str, Sequence[float], Sequence[float]]
"""Colour, line style, x, y."""
_FAR_APART = 5  # times: curves over time that end so differently share a logarithmic axis


@dataclass(frozen=True)
class Bar:
    """The bytes of a bar's parts, beside each other."""

    label: str
    payload: float
    headers: float = 0.0
    undelivered: float = 0.0


def curves(
    lines: Sequence[Curve], x: str, y: str, *, percent: bool = False, time: bool = False
) -> str:
    """Draw lines over rounds or, with `time`, over seconds."""
    figure, axes = new_axes(4.4, 2.9)
    for colour, style, xs, ys in lines:
        axes.plot(xs, ys, style, color=colour, linewidth=1.8, **_markers(len(xs)))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if percent:
        percent_axis(axes)
    ends = [xs[-1] for _, _, xs, _ in lines if len(xs)]
    if not time:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 9):g}"))
    if time and ends and max(ends) > _FAR_APART * min(ends) > 0:
        axes.set_xlabel(f"{x}, logarithmic")
        _logarithmic(axes)
    return svg(figure)


def _logarithmic(axes: Axes) -> None:
    """Make the horizontal axis logarithmic, with ticks that are written out."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def percent_axis(axes: Axes) -> None:
    """Set ticks that are all different, however small the range is."""
    low, high = axes.get_ylim()
    if high - low < _LEAST_PERCENT:
        middle = (low + high) / 2
        axes.set_ylim(middle - _LEAST_PERCENT / 2, middle + _LEAST_PERCENT / 2)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(100 * value, 4):g} %"))


def traffic(bars: Sequence[Bar]) -> str:
    """Draw bars of bytes per worker and round, with labels above and the bytes beside them."""
    figure, axes = new_axes(5.4, 0.5 * len(bars) + 0.75)
    places = np.arange(len(bars))[::-1]
    left = np.zeros(len(bars))
    for part, colour in (("payload", RUN), ("headers", HEADERS), ("undelivered", UNDELIVERED)):
        sizes = np.array([getattr(bar, part) for bar in bars])
        axes.barh(places, sizes, 0.4, left=left, color=colour)
        left += sizes
    for place, bar, end in zip(places, bars, left, strict=True):
        parts = [part for part in (bar.headers, bar.undelivered) if part]
        text = " + ".join(f"{size:,.0f}" for size in (bar.payload, *parts))
        look: dict[str, Any] = {"va": "center", "fontsize": 8.5, "color": _TEXT}
        axes.annotate(text, (end, place), (4, 0), textcoords="offset points", **look)
        axes.text(0, place + 0.24, bar.label, va="bottom", fontsize=8.5, color=DARK)
    axes.set_yticks([])
    axes.set_ylim(-0.45, len(bars) - 0.4)
    axes.set_xlim(0, 1.42 * max(1.0, *left))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("bytes per worker and round")
    axes.grid(visible=False, axis="y")
    return svg(figure)


def timeline(
    verdicts: Mapping[str, Mapping[int, int]], missed: np.ndarray[Any, Any], rounds: int
) -> str:
    """Draw verdicts a round, stacked by kind, above results missed, int[workers, rounds].

    Without verdicts only the results missed."""
    height = 0.5 + 0.26 * len(missed)
    panels = [1.5, height] if verdicts else [height]
    figure = Figure(figsize=(11, sum(panels) + 0.5), layout="constrained")
    axes = figure.subplots(
        len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": panels}
    )[:, 0]
    width = -(-rounds // _MAX_COLUMNS)
    for panel in axes:
        dress(panel)
    if verdicts:
        _stack(axes[0], verdicts, rounds, width)
    _heat(figure, axes[-1], missed, width)
    axes[-1].set_xlabel("round, from 0")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return svg(figure)


def _stack(axes: Axes, verdicts: Mapping[str, Mapping[int, int]], rounds: int, width: int) -> None:
    floor = np.zeros(-(-rounds // width))
    for label, counts in sorted(verdicts.items()):
        heights = np.zeros_like(floor)
        for training_round, count in counts.items():
            heights[training_round // width] += count
        places = width * np.arange(len(floor)) + (width - 1) / 2
        axes.bar(places, heights, width, bottom=floor, color=_KINDS.get(label, DARK), label=label)
        floor += heights
    axes.set_ylabel("packets")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    legend(axes, 6)


def _heat(figure: Figure, axes: Axes, missed: np.ndarray[Any, Any], width: int) -> None:
    workers, rounds = missed.shape
    padded = np.zeros((workers, -(-rounds // width) * width))
    padded[:, :rounds] = missed
    binned = padded.reshape(workers, -1, width).sum(axis=2)
    image = axes.imshow(
        binned,
        aspect="auto",
        interpolation="nearest",
        cmap="OrRd",
        vmin=0,
        vmax=max(1.0, binned.max()),
        extent=(-0.5, binned.shape[1] * width - 0.5, workers - 0.5, -0.5),
    )
    axes.set_yticks(range(workers), [f"worker {w}" for w in range(workers)])
    axes.grid(visible=False)
    bar = figure.colorbar(image, ax=axes, fraction=0.02, pad=0.01)
    bar.locator = MaxNLocator(integer=True, nbins=3)
    bar.update_ticks()
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=_TEXT, length=0)


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of that many inches with one panel in the reports' look."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give the axes the report's look."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=_TEXT, fontsize=9)
    axes.yaxis.label.set(color=_TEXT, fontsize=9)


def legend(axes: Axes, columns: int) -> None:
    """Put the labels above the panel, so many a line."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelcolor=_TEXT,
        borderaxespad=0.2,
        handlelength=1.4,
    )


def _markers(points: int) -> dict[str, Any]:
    return {"marker": "o", "markersize": 3.5} if points <= 40 else {}


def svg(figure: Figure) -> str:
    """Return the figure without XML's preamble; equal figures give equal text."""
    buffer = io.StringIO()
    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "gradplane", "font.family": "sans-serif"}
    ):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
