"""The colours of all pages, and figures: Plotly's traces and layouts as plain data, which the
page's script draws.

Colours of text and grid are the page's, light or dark; the script adds them. A trace's `meta` is
the name of its series, by which the page's key shows and hides it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]
"""`data` and `layout` as Plotly takes them. `link`: figures of the same name share their x axis."""

RUN, BASELINE, DARK = "#3b74e6", "#9aa3af", "#374151"
PALETTE = (RUN, "#e08a1e", "#0f9d76", "#c2489a", "#7d6be0", "#d0493b", "#1795b5", "#94815f")
HEADERS, UNDELIVERED, AGAIN = "#a9c3f7", "#ee9d8f", "#e08a1e"
PHASES = {
    "compute": RUN,
    "encode": "#e08a1e",
    "norms": "#7d6be0",
    "send": "#0f9d76",
    "wait": "rgba(148,163,184,0.45)",
    "decode": "#c2489a",
}
"""The colour of each phase of a worker's round, in their order; in pages, CSS's --compute etc."""

PLANNED = {
    "computation": PHASES["compute"],
    "codec": PHASES["encode"],
    "communication": "#9ad3c0",
    "communication, compressed": PHASES["send"],
}
"""The colour of each kind of task of a planned iteration."""

KINDS = {
    "drop, up": "#d0493b",
    "drop, down": "#ee9d8f",
    "leave out, up": "#7d6be0",
    "delay, up": "#1795b5",
    "delay, down": "#8fcbd9",
    "corrupt, up": "#b5651d",
    "corrupt, down": "#e3b98c",
    "duplicate, up": "#5b8f1a",
    "duplicate, down": "#b4d08a",
}
HEAT = [[0, "rgba(148,163,184,0.28)"], [0.001, "#f7c9a0"], [0.5, "#e2703a"], [1, "#9b2226"]]
_FAR_APART = 5  # times: curves over time that end so differently share a logarithmic axis
_LEAST_PERCENT = 0.02  # of a percent axis, so that noise does not fill it
_FEW_POINTS = 40
_FEW_WHOLE = 8


@dataclass(frozen=True)
class Curve:
    """A line: its series' name, colour, whether it is dashed, and its points."""

    name: str
    colour: str
    dashed: bool
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Bar:
    """The bytes of a bar's parts, beside each other."""

    label: str
    payload: float
    headers: float = 0.0
    undelivered: float = 0.0
    again: float = 0.0


def curves(
    lines: Sequence[Curve],
    x: str,
    y: str,
    *,
    percent: bool = False,
    far_apart: bool = False,
    unit: str = "",
    link: str = "",
) -> Figure:
    """Draw lines. x, y: the axes' titles. percent: y is a share. unit: x's, behind its numbers.

    far_apart: x is logarithmic where the lines end very differently. link: see Figure."""
    shown = ":.2%" if percent else ":,.6~g"
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(line.x) <= _FEW_POINTS else "lines",
            "name": line.name,
            "meta": line.name,
            "x": list(line.x),
            "y": list(line.y),
            "line": {"color": line.colour, "width": 2, "dash": "dash" if line.dashed else "solid"},
            "marker": {"size": 5},
            "hovertemplate": f"{escaped(line.name)}<br>{x} %{{x:,.6~g}}{unit}<br>{y} %{{y{shown}}}"
            "<extra></extra>",
        }
        for line in lines
    ]
    layout = axes(x, y)
    layout["xaxis"] |= _whole([value for line in lines for value in line.x])
    layout["yaxis"] |= _whole([value for line in lines for value in line.y])
    if percent:
        layout["yaxis"] |= _percent_axis([value for line in lines for value in line.y])
    ends = [line.x[-1] for line in lines if len(line.x)]
    if far_apart and ends and max(ends) > _FAR_APART * min(ends) > 0:
        layout["xaxis"] |= {"type": "log", "title": {"text": f"{x}, logarithmic"}}
    return {"data": data, "layout": layout, "link": link}


def band(label: str, colour: str, lines: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return the traces of the mean of lines, within a band from the least to the most."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for x, y in zip(line.x, line.y, strict=True):
            values.setdefault(x, []).append(y)
    places = sorted(values)
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    common = {"type": "scatter", "mode": "lines", "name": label, "meta": label, "x": places}
    edge = {**common, "line": {"width": 0}, "hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.22)"}
    return [
        {**edge, "y": [min(values[x]) for x in places]},
        {**edge, **fill, "y": [max(values[x]) for x in places]},
        {
            **common,
            "y": [sum(values[x]) / len(values[x]) for x in places],
            "line": {"color": colour, "width": 2},
            "hovertemplate": f"{escaped(label)}<br>%{{x}}: %{{y:,.4~g}}<extra></extra>",
        },
    ]


def _whole(values: Sequence[float]) -> dict[str, Any]:
    """Return an axis of few whole numbers: ticks at these, not between them."""
    if not values or any(value != int(value) for value in values):
        return {}
    return {"dtick": 1} if max(values) - min(values) < _FEW_WHOLE else {}


def escaped(text: str) -> str:
    """Return text for Plotly, which reads a few HTML tags in names."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def axes(x: str, y: str, height: int = 260) -> dict[str, Any]:
    """Return a layout with titles and a height in pixels."""
    titles = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    return titles | {"height": height, "showlegend": False}


def _percent_axis(values: Sequence[float]) -> dict[str, Any]:
    """Return an axis of shares whose range is not too small."""
    axis: dict[str, Any] = {"tickformat": ".3~%"}
    if values and max(values) - min(values) < _LEAST_PERCENT:
        middle = (max(values) + min(values)) / 2
        axis["range"] = [middle - _LEAST_PERCENT / 2, middle + _LEAST_PERCENT / 2]
    return axis


def traffic(bars: Sequence[Bar]) -> Figure:
    """Draw bars of bytes per worker and round, the labels above them."""
    places = list(range(len(bars)))[::-1]
    parts = {"payload": RUN, "again": AGAIN, "headers": HEADERS, "undelivered": UNDELIVERED}
    names = {"undelivered": "not delivered", "again": "sent again"}
    data = []
    for part, colour in parts.items():
        name = names.get(part, part)
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "meta": name,
                "y": places,
                "x": [getattr(bar, part) for bar in bars],
                "width": 0.4,
                "marker": {"color": colour},
                "customdata": [escaped(bar.label) for bar in bars],
                "hovertemplate": f"%{{customdata}}<br>{name} %{{x:,.1~f}} bytes<extra></extra>",
            }
        )
    notes = [
        {
            "x": 0,
            "y": place + 0.36,
            "text": f"{escaped(bar.label)}: {_sum(bar)}",
            "showarrow": False,
            "xanchor": "left",
        }
        for place, bar in zip(places, bars, strict=True)
    ]
    layout = axes("bytes per worker and round", "", 52 * len(bars) + 60)
    layout |= {"barmode": "stack", "annotations": notes}
    layout["yaxis"] = {"visible": False, "range": [-0.5, len(bars) - 0.3], "fixedrange": True}
    layout["xaxis"] |= {"rangemode": "tozero", "nticks": 5, "tickformat": ",d"}
    return {"data": data, "layout": layout}


def _sum(bar: Bar) -> str:
    parts = [part for part in (bar.again, bar.headers, bar.undelivered) if part]
    return " + ".join(f"{size:,.0f}" for size in (bar.payload, *parts))


def stack(counts: Mapping[str, Mapping[int, int]], y: str, link: str) -> Figure:
    """Draw counts a round as bars, stacked by kind."""
    data = []
    for label, found in sorted(counts.items()):
        rounds = sorted(found)
        data.append(
            {
                "type": "bar",
                "name": label,
                "meta": label,
                "x": rounds,
                "y": [found[number] for number in rounds],
                "width": 1,
                "marker": {"color": KINDS.get(label, DARK), "line": {"width": 0}},
                "hovertemplate": f"round %{{x}}<br>{label}: %{{y:,}} packets<extra></extra>",
            }
        )
    layout = axes("round, from 0", y, 190) | {"barmode": "stack", "bargap": 0}
    highest = sum((Counter(found) for found in counts.values()), Counter()).values()
    layout["yaxis"] |= {"rangemode": "tozero"} | _whole([0, *highest])
    return {"data": data, "layout": layout, "link": link}


def heat(
    rows: Sequence[str],
    z: Sequence[Sequence[float | None]],
    text: Sequence[Sequence[str]],
    link: str,
) -> Figure:
    """Draw a cell for each row and round. text: shown of each cell, beside row and round."""
    most = max((value for row in z for value in row if value is not None), default=0)
    data = [
        {
            "type": "heatmap",
            "x": list(range(max(map(len, z), default=0))),
            "y": list(rows),
            "z": z,
            "text": text,
            "colorscale": HEAT,
            "zmin": 0,
            "zmax": max(1, most),
            "showscale": False,
            "xgap": 0,
            "ygap": 1,
            "hoverongaps": False,
            "hovertemplate": "round %{x}, %{y}<br>%{text}<extra></extra>",
        }
    ]
    layout = axes("round, from 0", "", 90 + min(420, 20 * len(rows)))
    layout["yaxis"] = {"type": "category", "autorange": "reversed", "automargin": True}
    return {"data": data, "layout": layout, "link": link}
