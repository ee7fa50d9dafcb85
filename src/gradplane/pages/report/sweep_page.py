"""The report of a sweep: figures of each metric over each parameter, tables, what failed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isclose, isnan, nan
from pathlib import Path
from typing import Any

from gradplane._whole_files import write_whole
from gradplane.experiment.document import dumps, inline
from gradplane.pages import figures
from gradplane.pages.figures import Figure, axes, escaped
from gradplane.pages.kit import render
from gradplane.pages.report import charts
from gradplane.pages.report.page import write_wanted
from gradplane.runs.sweeps.axes import Axis, Point, label
from gradplane.runs.sweeps.sweep import Pages
from gradplane.runs.sweeps.sweep_folder import REPORT, SweepFolder
from gradplane.runs.sweeps.tables import CONFIDENCE, Estimate, Metric, Results

Values = dict[str, Any]

_MOST_LINES = len(figures.PALETTE)  # in a figure; more are drawn as their mean
_SHORT = 60  # characters of an error in the table; the rest is in the run's folder


def write(results: Results, out: str | Path | None = None) -> Path:
    """Write the report, by default report.html in the sweep's folder, and return its path."""
    path = Path(out) if out else results.folder.path / REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render("sweep.html", contents(results)))
    return path


def write_again(path: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of the sweep in a folder again; return its path."""
    return write(Results(SweepFolder.read(path)), out)


PAGES = Pages(write_wanted, write)


def contents(results: Results) -> Values:
    """Return everything that sweep.html shows."""
    plan, runs = results.plan, results.plan.runs
    points, seeds = _count(len(plan.points), "point"), _count(len(plan.seeds), "seed")
    where = {"mininet": "Mininet", "sim": "the simulated network"}[plan.network]
    columns = [metric for metric in results.metrics if _in_table(results, metric)]
    drawn = [m for m in columns if _varies(results, m)] if _drawn(plan.axes) else []
    fixed = [metric for metric in results.metrics if metric not in columns]
    return {
        "title": f"{plan.name}, sweep",
        "lead": f"{points}, {seeds}, on {where}",
        "cards": list(_cards(results)),
        "failures": [[name, text] for name, text in results.failures.items()],
        "unfinished": len(runs) - results.finished - len(results.failures),
        "axes": [[axis.key, ", ".join(map(label, axis.values))] for axis in plan.axes],
        "confidence": f"{CONFIDENCE:.0%}",
        "figures": [_figures(results, metric) for metric in drawn],
        "head": _head(plan.axes, columns),
        "rows": list(_rows(results, columns)),
        "fixed": [[m.title, estimate_text(results.estimate(0, m), m)] for m in fixed],
        "runs": list(_links(results)),
        "experiment": dumps(plan.experiments[0]),
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("s" if number != 1 else "")


def _cards(results: Results) -> Iterator[Values]:
    plan, failed = results.plan, len(results.failures)
    yield _card("Runs finished", f"{results.finished:,}", f"of {len(plan.runs):,}")
    yield _card("Runs failed", f"{failed:,}", "named below" if failed else "none", failed > 0)
    metric = next((m for m in results.metrics if m.name == "test_accuracy"), None)
    found = [] if metric is None else _known(results, metric)
    if metric is not None and found:
        for title, (estimate, point) in (
            ("Highest", max(found, key=_mean)),
            ("Lowest", min(found, key=_mean)),
        ):
            yield _card(f"{title} test accuracy", estimate_text(estimate, metric), _named(point))


def _mean(item: tuple[Estimate, Point]) -> float:
    return item[0].mean


def _card(title: str, value: str, note: str, bad: bool = False) -> Values:
    return {"title": title, "value": value, "note": note, "bad": bad}


def _known(results: Results, metric: Metric) -> list[tuple[Estimate, Point]]:
    """Return the points' estimates where there are any."""
    points = results.plan.points
    found = [(results.estimate(number, metric), point) for number, point in enumerate(points)]
    return [(estimate, point) for estimate, point in found if estimate.count]


def _numbers(results: Results, metric: Metric) -> list[float]:
    """Return the numbers of all runs, NaN where a run has none."""
    points = range(len(results.plan.points))
    found = (value for point in points for value in results.sample(point, metric))
    return [nan if value is None else value for value in found]


def _varies(results: Results, metric: Metric) -> bool:
    """Return whether runs differ in a number."""
    numbers = sorted(value for value in _numbers(results, metric) if not isnan(value))
    return bool(numbers) and not isclose(numbers[0], numbers[-1], rel_tol=1e-9)


def _in_table(results: Results, metric: Metric) -> bool:
    """Return whether runs differ in a number, or in whether they have it."""
    return _varies(results, metric) or any(map(isnan, _numbers(results, metric)))


def _named(point: Point) -> str:
    return ", ".join(f"{key} = {label(value)}" for key, value in point.items()) or "all runs"


# Figures


def _drawn(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes that a figure can be over."""
    return [axis for axis in axes if len(axis.values) > 1]


def _figures(results: Results, metric: Metric) -> Values:
    """Return a metric's figures, one over each parameter."""
    drawn = _drawn(results.plan.axes)
    return {"title": metric.title, "panels": [_panel(results, metric, axis) for axis in drawn]}


def _panel(results: Results, metric: Metric, axis: Axis) -> Values:
    """Draw a metric over an axis, a line for each combination of the other parameters.

    Where these are too many for one figure, a line of their mean, without intervals."""
    combinations: dict[str, list[Estimate]] = {}
    for number, point in enumerate(results.plan.points):
        others = {key: value for key, value in point.items() if key != axis.key}
        others = {key: value for key, value in others.items() if _several(results, key)}
        name = _named(others) if others else ""
        combinations.setdefault(name, []).append(results.estimate(number, metric))
    averaged = len(combinations) > _MOST_LINES
    if averaged:
        combinations = {"": _averaged(list(combinations.values()))}
    series = [
        Series(name, colour, [one.mean for one in found], [one.half for one in found])
        for colour, (name, found) in zip(figures.PALETTE, combinations.items(), strict=False)
    ]
    key = [charts.key(one.name, one.colour) for one in series if one.name]
    figure = estimates(series, axis.values, axis.key, metric.title, percent=metric.percent)
    return {"figure": figure, "key": key, "averaged": averaged}


def _several(results: Results, key: str) -> bool:
    return any(axis.key == key and len(axis.values) > 1 for axis in results.plan.axes)


def _averaged(lines: Sequence[Sequence[Estimate]]) -> list[Estimate]:
    """Return the mean of several lines at each place."""
    return [
        Estimate(Estimate.of([one.mean for one in found if one.count]).mean, nan, 0, 0)
        for found in zip(*lines, strict=True)
    ]


# Tables


def _head(axes: Sequence[Axis], metrics: Sequence[Metric]) -> list[str]:
    return [*([axis.key for axis in axes] or [""]), "runs", *(m.title for m in metrics)]


def _rows(results: Results, metrics: Sequence[Metric]) -> Iterator[list[str]]:
    for number, point in enumerate(results.plan.points):
        keys = [label(value) for value in point.values()] or ["all"]
        cells = (estimate_text(results.estimate(number, metric), metric) for metric in metrics)
        yield [*keys, f"{results.count(number):,}", *cells]


def estimate_text(found: Estimate, metric: Metric) -> str:
    """Return a mean, the half-width of its interval, and of how many runs it is where some have no
    such number, as those that did not reach a target; "-" where none has it."""
    if not found.count:
        return "-"
    some = f" ({found.count} of {found.runs})" if found.count < found.runs else ""
    return interval(found.mean, found.half, metric.percent) + some


_ROUNDING = 1e-12  # of a mean: equal values may differ from theirs by so much


def interval(mean: float, half: float, percent: bool) -> str:
    """Return "mean ± half" with as many digits as the half-width justifies."""
    if percent:
        return f"{mean:.2%}" if isnan(half) else f"{100 * mean:.2f} ± {100 * half:.2f} %"
    if isnan(half) or half <= _ROUNDING * abs(mean):
        return f"{mean:,.4g}" if abs(mean) < 1000 else f"{mean:,.0f}"
    digits = max(0, 1 - _exponent(half))
    return f"{mean:,.{digits}f} ± {half:,.{digits}f}"


def _exponent(value: float) -> int:
    """Return the power of ten of a positive number's first digit."""
    return int(f"{value:e}".partition("e")[2])


def _links(results: Results) -> Iterator[Values]:
    """Yield each run with its page, if it has one."""
    for run in results.plan.runs:
        page = Path("runs") / run.name / REPORT
        state = results.failures.get(run.name, "")
        yield {
            "name": run.name,
            "page": page.as_posix() if (results.folder.path / page).exists() else "",
            "point": _named(results.plan.points[run.point]),
            "error": state if len(state) <= _SHORT else f"{state[:_SHORT]}…",
        }


# Figures of estimates over the values of a parameter

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
