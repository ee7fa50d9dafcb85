"""The report's figures, as SVG text that stands in a page by itself. No window, no global state."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

RUN, BASELINE, DARK = "#2563eb", "#9aa3af", "#374151"
PALETTE = (RUN, "#e08a1e", "#0f9d76", "#b83280", "#6d5bd0", "#c0392b", "#0e7c99", "#7a6a53")
_GRID, _TEXT = "#e5e7eb", "#4b5563"
_KINDS = {
    "drop, up": "#c0392b",
    "drop, down": "#ee9d8f",
    "leave out, up": "#6d5bd0",
    "delay, up": "#0e7c99",
    "delay, down": "#8fcbd9",
}
_MAX_COLUMNS = 240  # of a heat map; more rounds share columns

Curve = tuple[str, str, str, Sequence[float], Sequence[float]]
"""Label, colour, line style, x, y."""
Bar = tuple[str, float, float]
"""Label, payload and header bytes."""


def curves(lines: Sequence[Curve], x: str, y: str, percent: bool = False) -> str:
    """Lines over rounds or seconds, their labels in a legend above."""
    figure, axes = new_axes(4.4, 3.1)
    for label, colour, style, xs, ys in lines:
        axes.plot(xs, ys, style, color=colour, label=label, linewidth=1.8, **_markers(len(xs)))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    legend(axes, 2)
    return _svg(figure)


def traffic(up: Sequence[Bar], down: Sequence[Bar]) -> str:
    """Stacked bars of payload and headers, a panel each way, with the bytes written beside them."""
    figure = Figure(figsize=(11, 0.62 * max(len(up), len(down)) + 1.1), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True)
    for axes, title, bars in zip(panels, ("Up", "Down"), (up, down), strict=True):
        dress(axes)
        _bars(axes, bars)
        axes.set_title(title, loc="left", fontsize=10, color=DARK)
    panels[0].legend(loc="lower right", frameon=False, fontsize=8.5, labelcolor=_TEXT)
    return _svg(figure)


def _bars(axes: Axes, bars: Sequence[Bar]) -> None:
    places = np.arange(len(bars))[::-1]
    payload, headers = (np.array([bar[i] for bar in bars]) for i in (1, 2))
    axes.barh(places, payload, 0.62, color=RUN, label="payload")
    axes.barh(places, headers, 0.62, left=payload, color="#bfd3fb", label="headers")
    for place, a, b in zip(places, payload, headers, strict=True):
        text = f" {a:,.0f} + {b:,.0f}" if b else f" {a:,.0f}"
        axes.text(a + b, place, text, va="center", fontsize=8.5, color=_TEXT)
    axes.set_yticks(places, [bar[0] for bar in bars])
    axes.set_xlim(0, 1.38 * max(1.0, *(payload + headers)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:g}"))
    axes.set_xlabel("kB per worker and round")
    axes.grid(visible=False, axis="y")


def timeline(
    verdicts: Mapping[str, Mapping[int, int]], missed: np.ndarray[Any, Any], rounds: int
) -> str:
    """Above: verdicts a round, stacked by kind. Below: results missed, int[workers, rounds]."""
    workers = len(missed)
    figure = Figure(figsize=(11, 2.5 + 0.26 * workers), layout="constrained")
    above, below = figure.subplots(
        2, 1, sharex=True, gridspec_kw={"height_ratios": [1.5, 0.5 + 0.26 * workers]}
    )
    dress(above)
    dress(below)
    width = -(-rounds // _MAX_COLUMNS)
    _stack(above, verdicts, rounds, width)
    _heat(figure, below, missed, width)
    below.set_xlabel("round")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _svg(figure)


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
    if verdicts:
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
    """A figure of that many inches with one panel in the reports' look."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """The report's look."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=_TEXT, fontsize=9)
    axes.yaxis.label.set(color=_TEXT, fontsize=9)


def legend(axes: Axes, columns: int) -> None:
    """The labels above the panel, so many a line."""
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


def _svg(figure: Figure) -> str:
    """The figure without XML's preamble; equal figures give equal text."""
    buffer = io.StringIO()
    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "gradplane", "font.family": "sans-serif"}
    ):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
