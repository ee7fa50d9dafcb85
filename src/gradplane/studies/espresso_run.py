"""Plans run on the simulated network: predicted and simulated iteration times, and their order."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gradplane.experiment.loading import load
from gradplane.hosts.protocols.run_plan import RESOURCES, Served, run_plan
from gradplane.planner.experiment_file import experiment
from gradplane.planner.plan import Plan, plan
from gradplane.planner.scale import scaled
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.studies.espresso import Case

Network = Literal["sim", "mininet"]


@dataclass(frozen=True)
class Iteration:
    """One iteration of a plan. Times in seconds, of the worker that took longest.

    served: by worker, the steps of its resources: resource, tensor, step, ready, start, end (ns).
    """

    seconds: float
    served: tuple[tuple[tuple[int, ...], ...], ...]


def made(case: Case, values: int, constraints: Sequence[str] = ()) -> Plan:
    """Return the plan of a case scaled to so many values; servers are left out.

    Hierarchical where machines have several GPUs: a flat routine's packets between GPUs of one
    machine would wait behind the machine's own routines, of which the timeline knows nothing.
    """
    system = case.system.model_copy(update={"servers": 0})
    if system.machines > 1 and system.gpus > 1:
        constraints = (*constraints, "shape=hierarchical")
    return plan(*scaled(case.model, case.compression, system, values), tuple(constraints))


def run(planned: Plan, network: Network, loss: float, seed: int) -> Iteration:
    """Run one iteration of a plan; `loss`: the share of packets that every link loses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "plan.json").write_text(planned.to_json(), "utf-8")
        text = experiment(planned, "plan.json")
        if loss:
            text += f'\n[[impairment]]\nmodel = "bernoulli"\nrate = {loss}\n'
        (folder / "experiment.toml").write_text(text, "utf-8")
        run_experiment.measure(load(folder / "experiment.toml", seed=seed), folder, network)
        lines = list(run_folder.read_lines(folder / run_folder.ARRIVALS))
        rounds = list(run_folder.read_lines(folder / run_folder.METRICS))
    workers = sorted(
        (line for line in lines if line["kind"] == "timeline"), key=lambda line: line["worker"]
    )
    seconds = max(w["finished"] - w["computed"] for w in rounds[-1]["workers"]) / 1e9
    return Iteration(seconds, tuple(tuple(map(tuple, line["events"])) for line in workers))


def overtaken(planned: Plan, iteration: Iteration) -> tuple[int, int, float]:
    """Return how the order in which steps became ready differs from the plan's.

    Of the steps on links of all workers: how many there are, how many became ready before one that
    the plan serves earlier and that had not begun, and the seconds that links were idle meanwhile,
    as a mean over the workers.
    """
    order = run_plan(json.loads(planned.to_json())).order
    count, waited, idle = 0, 0, 0
    for served in iteration.served:
        times = {tuple(event[:3]): event[3:] for event in served}
        for resource in ("intra", "inter"):
            found = _waits(RESOURCES.index(resource), order[resource], times)
            count += len(order[resource])
            waited += found[0]
            idle += found[1]
    return count, waited, idle / 1e9 / max(len(iteration.served), 1)


def _waits(
    resource: int, order: Sequence[Served], times: dict[tuple[int, ...], tuple[int, ...]]
) -> tuple[int, int]:
    waited: set[int] = set()
    idle, free = 0, 0
    steps = [times[resource, step.tensor, step.step] for step in order]
    for at, (ready, start, end) in enumerate(steps):
        later = [n for n, other in enumerate(steps[at + 1 :], at + 1) if other[0] < ready]
        waited.update(later)
        if later and start > free:
            idle += max(start - max(free, min(steps[n][0] for n in later)), 0)
        free = end
    return len(waited), idle


def values_of(planned: Plan, iteration: Iteration) -> dict[str, Any]:
    """Return an iteration as plain values beside its plan's prediction."""
    steps, waited, idle = overtaken(planned, iteration)
    return {
        "predicted": planned.time,
        "seconds": iteration.seconds,
        "error": iteration.seconds / planned.time - 1,
        "steps": steps,
        "overtaken": waited,
        "idle_seconds": idle,
    }
