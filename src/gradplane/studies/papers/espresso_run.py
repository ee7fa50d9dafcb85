"""Espresso's plans run on the simulated network: predicted beside simulated times, and losses."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from gradplane._whole_files import write_whole
from gradplane.experiment.loading import load
from gradplane.hosts.protocols.run_plan import RESOURCES, Served, run_plan
from gradplane.planner.experiment_file import experiment
from gradplane.planner.planning import Plan, plan, scaled
from gradplane.runs import run_experiment
from gradplane.runs.records import run_folder
from gradplane.studies import parallel, plot
from gradplane.studies.espresso import Case
from gradplane.studies.papers.espresso_table5 import MODELS, Codec, ModelName
from gradplane.studies.study import Study, StudyOutcome, several

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
        write_whole(folder / "plan.json", planned.to_json())
        text = experiment(planned, "plan.json")
        if loss:
            text += f'\n[[impairment]]\nmodel = "bernoulli"\nrate = {loss}\n'
        write_whole(folder / "experiment.toml", text)
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


SystemName = Literal["nvlink-100g", "pcie-25g", "switch-10g", "switch-25g", "tos-10g"]
SYSTEMS: tuple[SystemName, ...] = ("nvlink-100g", "pcie-25g", "switch-10g")


class PlansRun(Study):
    """Each model scaled to `values` values; a plan's steps run as real packets of real codecs."""

    name: Literal["espresso-run"] = "espresso-run"
    models: tuple[ModelName, ...] = several(MODELS)
    codec: Codec | Literal["thc"] = "dgc"
    systems: tuple[SystemName, ...] = several(SYSTEMS)
    machines: Annotated[int, Field(strict=True, ge=1, le=16)] = 2
    gpus: Annotated[int, Field(strict=True, ge=1, le=8)] = 2
    values: Annotated[int, Field(strict=True, ge=1000)] = 1_000_000
    loss: Annotated[float, Field(ge=0, lt=0.5)] = 0.001
    net: Network = "sim"

    def run(self, seed: int) -> StudyOutcome:
        """Return a row for each model and system, without losses and with them."""
        cases = [(self, m, s, seed) for m in self.models for s in self.systems]
        rows = parallel.each(PlansRun.row, cases, "plan")
        return StudyOutcome(
            title=f"Espresso: plans that run, {self.codec}, {self.machines} x {self.gpus} GPUs",
            head=("model", "system", "plan, ms", "run", "differ", "lossy", "waiting"),
            rows=tuple(
                (
                    row["model"],
                    row["system"],
                    f"{1e3 * row['predicted']:.2f}",
                    f"{1e3 * row['seconds']:.2f}",
                    f"{row['error']:+.1%}",
                    f"{1e3 * row['lossy']['seconds']:.2f}",
                    f"{row['overtaken']}, {row['lossy']['overtaken']}",
                )
                for row in rows
            ),
            notes=_notes(rows, self.values, self.loss),
            values=rows,
            figure=plot.stacks(
                [f"{row['model']}\n{row['system']}" for row in rows],
                {"run over plan": [row["seconds"] / row["predicted"] for row in rows]},
                "simulated over predicted time",
            ),
        )

    def row(self, model: str, system: str, seed: int) -> dict[str, Any]:
        """Return the plain values of a model on a system, without losses and with them."""
        case = Case.of(model, self.codec, system, self.machines)
        case = case._replace(system=case.system.model_copy(update={"gpus": self.gpus}))
        planned = made(case, self.values)
        plain = run(planned, self.net, 0.0, seed)
        lossy = run(planned, self.net, self.loss, seed)
        return {
            "model": model,
            "system": system,
            **values_of(planned, plain),
            "lossy": values_of(planned, lossy) | {"loss": self.loss},
            "paper": None,
        }


def _notes(rows: list[dict[str, Any]], values: int, loss: float) -> tuple[str, ...]:
    worst = max(rows, key=lambda row: abs(row["error"]))
    slower = [row["lossy"]["seconds"] / row["seconds"] - 1 for row in rows]
    before = sum(row["overtaken"] for row in rows)
    after = sum(row["lossy"]["overtaken"] for row in rows)
    steps = sum(row["steps"] for row in rows)
    return (
        f"Each model is scaled to {values:,} values, with links and codecs as much slower, so that"
        " computation, codecs and links take what they take at full size. Predicted and simulated"
        f" iterations differ by {abs(worst['error']):.1%} at most ({worst['model']},"
        f" {worst['system']}). The paper states no such comparison.",
        f"With {loss:.1%} of all packets lost, iterations take {min(slower):+.0%} to"
        f" {max(slower):+.0%} longer: a lost packet is sent again, and every later step of its"
        " link waits, since all workers keep the plan's order. Waiting are communications that"
        " were ready on a worker before one that the plan has earlier, and waited for it:"
        f" {before:,} without losses, {after:,} with them, of {steps:,}. A lost packet that no"
        " later one overtakes is sent again after a timeout, at least the time of the windows of a"
        " machine's GPUs, both ways, on the slowest"
        " link: the further a job is scaled down, the larger it is beside an iteration.",
    )
