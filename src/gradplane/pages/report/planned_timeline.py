"""The last iteration of a job with a plan: its timeline as planned beside the run's."""

from collections.abc import Iterator, Sequence
from typing import Any

from gradplane.experiment.planned_jobs import COMPUTATION, RESOURCES, RunPlan, parsed
from gradplane.pages import figures
from gradplane.pages.report import charts
from gradplane.runs.records.run_data import RunData

HEAD = ("job", "planned, ms", "run, ms", "differs by", "longest wait behind an earlier step, ms")
_LANES = {"gpu": "GPU", "cpu": "CPU", "intra": "in machine", "inter": "between"}
KEY = [charts.key(label, colour, 10) for label, colour in figures.PLANNED.items()]

Bar = tuple[str, str, float, float]
"""Resource, kind of task (figures.PLANNED), beginning and length in ms."""


def contents(run: RunData) -> dict[str, Any]:
    """Return a row for each job with a plan, and the figure of the first one's worker 0."""
    rows: list[list[str]] = []
    figure: figures.Figure | None = None
    for number, job in enumerate(run.experiment.job):
        if job.plan is None:
            continue
        plan = parsed(job)
        lines = [
            line for line in run.arrivals if (line["kind"], line["job"]) == ("timeline", number)
        ]
        if not lines:
            continue
        last = max(line["ticket"] for line in lines)
        workers = [line for line in lines if line["ticket"] == last]
        ends = [line["forward"] + max(event[5] for event in line["events"]) for line in workers]
        waits = max(event[4] - event[3] for line in workers for event in line["events"])
        rows.append(
            [
                job.name, f"{plan.iteration_ns / 1e6:.3f}", f"{max(ends) / 1e6:.3f}",
                f"{max(ends) / max(plan.iteration_ns, 1) - 1:+.1%}", f"{waits / 1e6:.3f}",
            ]
        )  # fmt: skip
        first = min(workers, key=lambda line: line["worker"])
        figure = figure or _figure(plan, first["events"])
    return {"head": HEAD, "rows": rows, "figure": figure, "key": KEY}


def _figure(plan: RunPlan, events: Sequence[Sequence[int]]) -> figures.Figure:
    data: list[dict[str, Any]] = []
    drawn = (("", list(_planned(plan))), ("2", list(_run(plan, events))))
    for axis, bars in drawn:
        for label, colour in figures.PLANNED.items():
            own = [bar for bar in bars if bar[1] == label]
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "meta": label,
                    "name": label,
                    "yaxis": f"y{axis}",
                    "y": [_LANES[resource] for resource, _, _, _ in own],
                    "base": [start for _, _, start, _ in own],
                    "x": [length for _, _, _, length in own],
                    "width": 0.8,
                    "marker": {"color": colour},
                    "hovertemplate": f"{label}<br>%{{y}}, from %{{base:,.6~g}} ms, for"
                    " %{x:,.6~g} ms<extra></extra>",
                }
            )
    lanes: dict[str, Any] = {
        "type": "category",
        "categoryarray": [_LANES[name] for name in RESOURCES],
    }
    lanes |= {"autorange": "reversed", "automargin": True}
    layout = figures.axes("ms since the backward propagation began", "", 380)
    layout |= {"barmode": "overlay"}
    layout["xaxis"] |= {"anchor": "y2"}
    layout["yaxis"] = lanes | {"domain": [0.54, 1], "title": {"text": "planned"}}
    layout["yaxis2"] = lanes | {"domain": [0, 0.46], "title": {"text": "this run"}}
    return {"data": data, "layout": layout}


def _planned(plan: RunPlan) -> Iterator[Bar]:
    for resource, steps in plan.order.items():
        for step in steps:
            kind = _kind(plan, resource, step.tensor, step.step)
            yield resource, kind, step.start / 1e6, (step.end - step.start) / 1e6


def _run(plan: RunPlan, events: Sequence[Sequence[int]]) -> Iterator[Bar]:
    for number, tensor, step, _, start, end in events:
        resource = RESOURCES[number]
        yield resource, _kind(plan, resource, tensor, step), start / 1e6, (end - start) / 1e6


def _kind(plan: RunPlan, resource: str, tensor: int, step: int) -> str:
    if step == COMPUTATION:
        return "computation"
    if resource in ("gpu", "cpu"):
        return "codec"
    compressed = any(task.kind.endswith("_comp") for task in plan.tensors[tensor].steps[step])
    return "communication, compressed" if compressed else "communication"
