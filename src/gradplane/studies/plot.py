"""The studies' figures: bars and curves in the report's look, as SVG or PNG."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, PercentFormatter

from gradplane.pages.figures import BASELINE, DARK, PALETTE, RUN

_GRID, _TEXT = "#e5e7eb", "#4b5563"


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


Point = tuple[str, float, float]
"""A labelled point: label, x, y."""

_CAPS: dict[str, Any] = {"error_kw": {"ecolor": DARK, "elinewidth": 1.2, "capsize": 3}}
_MARGIN = 1.6  # the factor by which a logarithmic axis extends beyond the largest bar


def pairs(
    labels: Sequence[str],
    ours: Sequence[float],
    paper: Sequence[float | None],
    y: str,
    log: bool = False,
    spread: Sequence[float] | None = None,
) -> Figure:
    """Draw our bar and the paper's for each label; no bar where the paper's number is None.

    spread: half of the interval of each of our numbers."""
    figure, axes = new_axes(6.4, 3.2)
    places = np.arange(len(labels))
    known = [0.0 if value is None else value for value in paper]
    axes.bar(places - 0.2, ours, 0.38, yerr=spread, color=RUN, label="here", **_CAPS)
    axes.bar(places + 0.2, known, 0.38, color=BASELINE, label="the paper")
    if log:
        _log(axes)
        drawn = [value for value in (*ours, *known) if value > 0]
        axes.set_ylim(min(drawn) / _MARGIN, max(drawn) * _MARGIN)
    tops = [value + half for value, half in zip(ours, spread or [0.0] * len(ours), strict=True)]
    written = [*zip(places - 0.2, ours, tops, strict=True)]
    written += [(place, value, value) for place, value in _present(places + 0.2, paper)]
    for place, value, top in written:
        text = f"{value:.3g}" if spread is None else f"{value:.1f}"
        axes.text(place, max(top, 0), text, ha="center", va="bottom", fontsize=8)
    axes.set_xticks(places, labels, fontsize=8 if len(labels) > 4 else None)
    axes.set_ylabel(y)
    axes.grid(visible=False, axis="x")
    legend(axes, 2)
    return figure


def _present(
    places: npt.NDArray[np.floating], values: Sequence[float | None]
) -> list[tuple[float, float]]:
    return [(p, v) for p, v in zip(places, values, strict=True) if v is not None]


Lines = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""x and y values by label."""


def curves(lines: Lines, x: str, y: str) -> Figure:
    """Draw a line for each label, with a logarithmic y axis."""
    figure, axes = new_axes(6.4, 3.2)
    for (label, (xs, ys)), colour in zip(lines.items(), _colours(len(lines)), strict=True):
        axes.plot(xs, ys, color=colour, label=label, linewidth=1.8, marker="o", markersize=3.5)
    _log(axes)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def stairs(lines: Lines, x: str, y: str, ticks: Sequence[float]) -> Figure:
    """Draw a step line for each label, with y ticks at `ticks`.

    Lines that would hide each other are shifted slightly apart."""
    figure, axes = new_axes(6.4, 3.2)
    apart = (ticks[-1] - ticks[0]) / 60 if len(ticks) > 1 else 0.0
    for n, ((label, (xs, ys)), colour) in enumerate(
        zip(lines.items(), _colours(len(lines)), strict=True)
    ):
        shifted = np.asarray(ys) + apart * (n - (len(lines) - 1) / 2)
        axes.step(xs, shifted, where="post", color=colour, label=label, linewidth=1.8)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def points(groups: Mapping[str, Sequence[Point]], x: str, y: str) -> Figure:
    """Draw labelled points, joined within each group; x is logarithmic, y in per cent.

    The first group's labels are below their points, so that they do not overlap the others'."""
    figure, axes = new_axes(6.4, 3.4)
    for (group, members), colour in zip(groups.items(), _colours(len(groups)), strict=True):
        xs, ys = [point[1] for point in members], [point[2] for point in members]
        axes.plot(xs, ys, color=colour, label=group, linewidth=1.2, marker="o", markersize=5)
        below = group == next(iter(groups))
        for text, place, height in members:
            axes.annotate(
                *(text, (place, height)),
                xytext=(0, -15 if below else 7),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    axes.margins(0.1, 0.2)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=1))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def stacks(labels: Sequence[str], parts: Mapping[str, Sequence[float]], y: str) -> Figure:
    """Draw a bar for each label, its parts stacked."""
    figure, axes = new_axes(6.4, 3.2)
    floor = np.zeros(len(labels))
    for (label, heights), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        axes.bar(labels, heights, 0.5, bottom=floor, color=colour, label=label)
        floor += heights
    axes.set_ylabel(y)
    axes.grid(visible=False, axis="x")
    legend(axes, 4)
    return figure


def linear(lines: Lines, x: str, y: str, from_zero: bool = True) -> Figure:
    """Draw a line for each label; with `from_zero`, y starts at 0 and every x has a tick."""
    figure, axes = new_axes(6.4, 3.2)
    for (label, (xs, ys)), colour in zip(lines.items(), _colours(len(lines)), strict=True):
        axes.plot(xs, ys, color=colour, label=label, linewidth=1.8, marker="o", markersize=3.5)
    if from_zero:
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted({value for xs, _ in lines.values() for value in xs}))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def doublings(lines: Lines, x: str, y: str) -> Figure:
    """Draw a line for each label over a logarithmic x axis of base 2; y starts at 0.

    Lines come in pairs of one colour each, of which the second is dashed."""
    figure, axes = new_axes(6.4, 3.6)
    colours = _colours(-(-len(lines) // 2))
    for place, (label, (xs, ys)) in enumerate(lines.items()):
        (line,) = axes.plot(xs, ys, label=label, linewidth=1.8, marker="o", markersize=3.5)
        line.set_color(colours[place // 2])
        line.set_linestyle("--" if place % 2 else "-")
    axes.set_ylim(bottom=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def intervals(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]], x: str, y: str
) -> Figure:
    """Draw a line with interval bars for each label: x, means and half-widths by label.

    x is logarithmic; lines are set slightly apart, and a thin one marks 0."""
    figure, axes = new_axes(6.4, 3.4)
    axes.axhline(0, color=DARK, linewidth=0.8)
    for n, ((label, (xs, ys, halves)), colour) in enumerate(
        zip(lines.items(), _colours(len(lines)), strict=True)
    ):
        apart = 1.04 ** (n - (len(lines) - 1) / 2)
        look: dict[str, Any] = {"linewidth": 1.6, "elinewidth": 1.2, "capsize": 3, "markersize": 4}
        axes.errorbar(
            np.array(xs) * apart, ys, halves, color=colour, label=label, marker="o", **look
        )
    axes.set_xscale("log", base=2)
    ticks = sorted({value for xs, _, _ in lines.values() for value in xs})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    legend(axes, 4)
    return figure


def panels(
    groups: Mapping[str, Mapping[str, Sequence[float]]],
    labels: Sequence[str],
    y: str,
    beside: bool = False,
) -> Figure:
    """Draw a panel for each group, side by side, with a bar for each label, its parts stacked.

    beside: the parts are bars beside each other."""
    figure = Figure(figsize=(2.4 * len(groups), 3.2), layout="constrained")
    all_axes = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for axes, (title, parts) in zip(all_axes, groups.items(), strict=True):
        dress(axes)
        floor = np.zeros(len(labels))
        width = 0.8 / len(parts) if beside else 0.6
        places = np.arange(len(labels)) - (0.4 - width / 2 if beside else 0.0)
        for (part, heights), colour in zip(parts.items(), _colours(len(parts)), strict=True):
            axes.bar(places, heights, width, bottom=floor, color=colour, label=part)
            if beside:
                places = places + width
            else:
                floor += heights
        axes.set_xticks(np.arange(len(labels)), labels)
        axes.set_xlabel(title)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(visible=False, axis="x")
    all_axes[0].set_ylabel(y)
    handles, names = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    return figure


def render(figure: Figure, kind: Literal["svg", "png"]) -> bytes:
    """Return the figure as a file with a white background; equal figures give equal SVG."""
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
    """Make the y axis logarithmic, with plain numbers at 1, 2, 5, 10, ..."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
