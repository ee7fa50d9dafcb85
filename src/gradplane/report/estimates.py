"""The figure of a sweep: means with their intervals over the values of a parameter."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from gradplane.experiment.document import inline
from gradplane.report.figures import new_axes, percent_axis, svg

_LONG = 9  # characters of a value's name that is written aslant
_WIDE = 8  # times: positive values that are so far apart get a logarithmic axis
_APART = 0.06  # of the distance of two places, by which lines are set apart


@dataclass(frozen=True)
class Series:
    """A line: its colour, a mean for each place, NaN where there is none, and half-widths."""

    colour: str
    means: Sequence[float]
    halves: Sequence[float]


def estimates(
    series: Sequence[Series], values: Sequence[Any], x: str, y: str, *, percent: bool = False
) -> str:
    """Draw a line with interval bars for each series over the values of a parameter.

    Numbers have a linear or logarithmic axis; numbers that are far apart and begin at 0, and what
    is no number, have evenly spaced places."""
    figure, axes = new_axes(4.4, 2.9)
    places, spread = _places(axes, values)
    for number, one in enumerate(series):
        shift = spread * (number - (len(series) - 1) / 2)
        halves = np.array([0.0 if isnan(half) else half for half in one.halves])
        order = np.argsort(places)
        axes.errorbar(
            places[order] + shift,
            np.array(one.means)[order],
            halves[order],
            color=one.colour,
            linewidth=1.6,
            elinewidth=1.2,
            marker="o",
            markersize=4,
            capsize=3 if halves.any() else 0,
        )
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if percent:
        percent_axis(axes)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    return svg(figure)


def _places(axes: Axes, values: Sequence[Any]) -> tuple[np.ndarray[Any, Any], float]:
    """Set the axis up; return the places of the values, and by how much lines are set apart."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers and max(values) < _WIDE * max(min(values), 1e-300):
        axes.set_xticks(sorted(values))
        return np.array(values, float), 0.0
    if numbers and min(values) > 0:
        axes.set_xscale("log")
        axes.set_xticks(sorted(values), [f"{value:g}" for value in sorted(values)])
        axes.xaxis.set_minor_locator(NullLocator())
        return np.array(values, float), 0.0
    names = [value if isinstance(value, str) else inline(value) for value in values]
    aslant = any(len(name) > _LONG for name in names)
    look: dict[str, Any] = {"rotation": 20, "ha": "right"} if aslant else {}
    axes.set_xticks(range(len(values)), [_short(name) for name in names], **look)
    axes.set_xlim(-0.4, len(values) - 0.6)
    return np.arange(len(values), dtype=float), _APART


def _short(name: str) -> str:
    return name if len(name) <= 3 * _LONG else f"{name[: 3 * _LONG]}…"
