"""The studies' figures: bars and curves in the report's look, as SVG or PNG."""

import io
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from gradplane.figures import BASELINE, PALETTE, RUN, _figure, _legend

_MARGIN = 1.6  # of a logarithmic axis beyond the largest bar


def pairs(
    labels: Sequence[str],
    ours: Sequence[float],
    paper: Sequence[float | None],
    y: str,
    log: bool = False,
) -> Figure:
    """Our bar and the paper's for each label; no bar where the paper's number is None."""
    figure, axes = _figure(6.4, 3.2)
    places = np.arange(len(labels))
    known = [0.0 if value is None else value for value in paper]
    axes.bar(places - 0.2, ours, 0.38, color=RUN, label="here")
    axes.bar(places + 0.2, known, 0.38, color=BASELINE, label="the paper")
    if log:
        _log(axes)
        axes.set_ylim(min(ours) / _MARGIN, max(*ours, *known) * _MARGIN)
    for place, value in [*zip(places - 0.2, ours, strict=True), *_present(places + 0.2, paper)]:
        axes.text(place, value, f"{value:.3g}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks(places, labels)
    axes.set_ylabel(y)
    axes.grid(visible=False, axis="x")
    _legend(axes, 2)
    return figure


def _present(
    places: npt.NDArray[np.floating], values: Sequence[float | None]
) -> list[tuple[float, float]]:
    return [(p, v) for p, v in zip(places, values, strict=True) if v is not None]


def curves(lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], x: str, y: str) -> Figure:
    """A line for each label, over a logarithmic y axis."""
    figure, axes = _figure(6.4, 3.2)
    for (label, (xs, ys)), colour in zip(lines.items(), _colours(len(lines)), strict=True):
        axes.plot(xs, ys, color=colour, label=label, linewidth=1.8, marker="o", markersize=3.5)
    _log(axes)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    _legend(axes, 4)
    return figure


def stacks(labels: Sequence[str], parts: Mapping[str, Sequence[float]], y: str) -> Figure:
    """One bar for each label, its parts on top of each other."""
    figure, axes = _figure(6.4, 3.2)
    floor = np.zeros(len(labels))
    for (label, heights), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        axes.bar(labels, heights, 0.5, bottom=floor, color=colour, label=label)
        floor += heights
    axes.set_ylabel(y)
    axes.grid(visible=False, axis="x")
    _legend(axes, 4)
    return figure


def render(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """The figure as a file, on white; equal figures give equal SVG."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "gradplane", "font.family": "sans-serif"}
    ):
        figure.savefig(buffer, format=kind, dpi=150, facecolor="white", metadata=metadata)
    return buffer.getvalue()


def _colours(count: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(count)]


def _log(axes: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2, 5, 10, ..."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
