"""The figure of a sweep: means with their intervals over the values of a parameter."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from gradplane.experiment.document import inline
from gradplane.pages.figures import Figure, axes, escaped

_WIDE = 8  # times: positive values that are so far apart get a logarithmic axis
_APART = 0.06  # of the distance of two places, by which lines are set apart
_LONG = 27  # characters of a value's name that fit below an axis


@dataclass(frozen=True)
class Series:
    """A line: its name, its colour, a mean for each place, NaN where there is none, half-widths."""

    name: str
    colour: str
    means: Sequence[float]
    halves: Sequence[float]


def estimates(
    series: Sequence[Series], values: Sequence[Any], x: str, y: str, *, percent: bool = False
) -> Figure:
    """Draw a line with interval bars for each series over the values of a parameter.

    Numbers have a linear or logarithmic axis; numbers that are far apart and begin at 0, and what
    is no number, have evenly spaced places."""
    places, axis, spread = _places(values)
    order = sorted(range(len(places)), key=lambda place: places[place])
    shown = ".2%" if percent else ",.5~g"
    data = []
    for number, one in enumerate(series):
        shift = spread * (number - (len(series) - 1) / 2)
        halves = [0.0 if isnan(one.halves[place]) else one.halves[place] for place in order]
        means = [None if isnan(one.means[place]) else one.means[place] for place in order]
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": one.name,
                "meta": one.name,
                "x": [places[place] + shift for place in order],
                "y": means,
                "error_y": {"array": halves, "visible": any(halves), "width": 3},
                "line": {"color": one.colour, "width": 2},
                "customdata": [_name(values[place]) for place in order],
                "hovertemplate": f"{escaped(one.name)}<br>{escaped(x)} %{{customdata}}<br>"
                f"{escaped(y)} %{{y:{shown}}} ± %{{error_y.array:{shown}}}<extra></extra>",
            }
        )
    layout = axes(escaped(x), escaped(y), 280)
    layout["xaxis"] |= axis
    if percent:
        layout["yaxis"] |= {"tickformat": ".3~%"}
    return {"data": data, "layout": layout}


def _places(values: Sequence[Any]) -> tuple[list[float], dict[str, Any], float]:
    """Return the places of the values, their axis, and by how much lines are set apart."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    ticks = {"tickmode": "array", "ticktext": [_short(_name(value)) for value in values]}
    if numbers and max(values) < _WIDE * max(min(values), 1e-300):
        return [float(v) for v in values], ticks | {"tickvals": list(values)}, 0.0
    if numbers and min(values) > 0:
        return [float(v) for v in values], ticks | {"type": "log", "tickvals": list(values)}, 0.0
    places = [float(place) for place in range(len(values))]
    axis = {"tickvals": places, "range": [-0.4, len(values) - 0.6], "automargin": True}
    return places, ticks | axis, _APART


def _name(value: Any) -> str:
    return escaped(value if isinstance(value, str) else inline(value))


def _short(name: str) -> str:
    return name if len(name) <= _LONG else f"{name[:_LONG]}…"
