"""The page of a plan: times, the timeline as a figure with a lane per resource, the tensors."""

from __future__ import annotations

from gradplane.pages.kit import render
from gradplane.planner.costs import INTRA, RESOURCES
from gradplane.planner.planning import Plan
from gradplane.planner.timeline import TimelineEvent

WIDTH, LANE, LEFT = 1076, 44, 75  # pixels
_TITLES = {"gpu": "GPU", "cpu": "CPU", "intra": "in machine", "inter": "between"}


def page(plan: Plan) -> str:
    """Return the page of a plan as HTML that needs nothing else."""
    backward = max(plan.time - plan.model.forward, 1e-9)
    scale = (WIDTH - LEFT - 10) / backward
    return render(
        "plan.html",
        {
            "title": f"{plan.model.name} with {plan.compression.codec} on {plan.system.name}",
            "lead": _lead(plan),
            "plan": plan,
            "times": {"this plan": plan.time, **plan.references, "bound": plan.bound},
            "busy": {_TITLES[name]: time / backward for name, time in plan.busy().items()},
            "width": WIDTH,
            "height": 4 * LANE + 30,
            "lanes": [(_TITLES[name], n * LANE + LANE / 2 + 4) for n, name in enumerate(RESOURCES)],
            "boxes": [_box(plan, event, scale) for event in plan.events],
            "bubbles": [
                (LEFT + start * scale, max((end - start) * scale, 0.5), 1e3 * (end - start))
                for start, end in plan.bubbles()
            ],
            "ticks": [(LEFT + n * backward / 10 * scale, 1e2 * n * backward) for n in range(11)],
            "lane": LANE,
        },
    )


def _lead(plan: Plan) -> str:
    system = plan.system
    rules = f", constraints: {', '.join(plan.constraints)}" if plan.constraints else ""
    return (
        f"{len(plan.model.tensors)} tensors, {system.machines} machines of {system.gpus} GPUs,"
        f" {plan.options} options per tensor{rules}. Predicted, not measured."
    )


def _box(plan: Plan, event: TimelineEvent, scale: float) -> dict[str, object]:
    tensor = plan.rows[event.tensor]
    kind = "compute" if event.step < 0 else "codec" if event.resource < INTRA else "link"
    milliseconds = f"{event.start * 1e3:.3f} to {event.end * 1e3:.3f} ms"
    return {
        "x": round(LEFT + event.start * scale, 2),
        "y": event.resource * LANE + 5,
        "width": round(max((event.end - event.start) * scale, 0.2), 2),
        "height": LANE - 10,
        "kind": kind if tensor.option.compressions or kind == "compute" else f"{kind} plain",
        "title": f"{tensor.name}, {kind}, {milliseconds}: {tensor.option}",
    }
