"""The last iteration of a job with a plan: its timeline as planned beside the run's."""

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from gradplane.experiment.planned_jobs import COMPUTATION, RESOURCES, RunPlan, parsed
from gradplane.records.run_data import RunData
from gradplane.report import figures

HEAD = ("job", "planned, ms", "run, ms", "differs by", "longest wait behind an earlier step, ms")
_LANES = {"gpu": "GPU", "cpu": "CPU", "intra": "in machine", "inter": "between"}
_COLOURS = (figures.BASELINE, figures.RUN, figures.PALETTE[2], figures.PALETTE[3])
"""Computation, codec, communication of uncompressed and of compressed tensors."""
_LABELS = ("computation", "codec", "communication", "communication, compressed")

Bar = tuple[str, int, float, float]
"""Resource, colour, beginning and length in ms."""


def contents(run: RunData) -> dict[str, Any]:
    """Return a row for each job with a plan, and the figure of the first one's worker 0."""
    rows, figure = [], ""
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
    return {"head": HEAD, "rows": rows, "svg": figure}


def _figure(plan: RunPlan, events: Sequence[Sequence[int]]) -> str:
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    lanes = figure.subplots(2, 1, sharex=True)
    planned = list(_planned(plan))
    for axes, title, bars in zip(
        lanes, ("planned", "this run"), (planned, list(_run(plan, events))), strict=True
    ):
        figures.dress(axes)
        for lane, name in enumerate(RESOURCES):
            for colour, label in enumerate(_LABELS):
                spans = [(a, b) for resource, c, a, b in bars if (resource, c) == (name, colour)]
                axes.broken_barh(
                    spans, (3.1 - lane, 0.8), facecolors=_COLOURS[colour],
                    label=label if lane == 0 else None,
                )  # fmt: skip
        axes.set_yticks([3.5 - lane for lane in range(4)], list(_LANES.values()), fontsize=8)
        axes.set_ylim(0, 4)
        axes.set_ylabel(title)
    lanes[1].set_xlabel("ms since the backward propagation began")
    handles, names = lanes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper left", ncols=4, frameon=False, fontsize=9)
    return figures.svg(figure)


def _planned(plan: RunPlan) -> Iterator[Bar]:
    for resource, steps in plan.order.items():
        for step in steps:
            colour = _colour(plan, resource, step.tensor, step.step)
            yield resource, colour, step.start / 1e6, (step.end - step.start) / 1e6


def _run(plan: RunPlan, events: Sequence[Sequence[int]]) -> Iterator[Bar]:
    for number, tensor, step, _, start, end in events:
        resource = RESOURCES[number]
        yield resource, _colour(plan, resource, tensor, step), start / 1e6, (end - start) / 1e6


def _colour(plan: RunPlan, resource: str, tensor: int, step: int) -> int:
    if step == COMPUTATION:
        return 0
    if resource in ("gpu", "cpu"):
        return 1
    compressed = any(task.kind.endswith("_comp") for task in plan.tensors[tensor].steps[step])
    return 3 if compressed else 2
