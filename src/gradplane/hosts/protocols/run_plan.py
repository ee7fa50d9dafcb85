"""A plan as the workers run it: what `gradplane plan` wrote to plan.json, with times in ns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradplane.hosts.config import ConfigError

RESOURCES = ("gpu", "cpu", "intra", "inter")
SERVER = "server"
"""The routine in which servers add the values."""
MARKED = "tos"
"""The routine whose values the edge switches compress."""
SWITCH_VALUES, SWITCH_CODES = SUMMED = ("switch-int32", "switch-codes")
"""The routines in which the switch adds values, and the codes of compressed ones."""
ROUTINES = frozenset(
    {"allreduce", "reduce-scatter", "reduce", "allgather", "broadcast", "alltoall", "gather"}
    | {SERVER, MARKED, *SUMMED}
)
COMPUTATION = -1
"""The number of a tensor's computation among its steps."""


@dataclass(frozen=True)
class PlannedTask:
    """A task of a tensor's option (Espresso, Table 3).

    kind: "comp", "decomp", or a communication: "comm", "comm1", "comm2", each also with "_comp".
    choice: the device, or the routine. phase: "flat", "intra1", "inter", "intra2".
    """

    number: int  # among the tensor's tasks
    kind: str
    choice: str
    phase: str
    ns: int


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor: its place in the gradient, the time of its computation, its steps.

    A step is tasks that follow each other on one resource.
    """

    name: str
    offset: int
    values: int
    compute_ns: int
    steps: tuple[tuple[PlannedTask, ...], ...]

    def of_sums(self, task: PlannedTask) -> bool:
        """Return whether what a task decompresses are sums of codes that the switch made."""
        before = [each for step in self.steps for each in step][: task.number]
        since = max(each.number for each in before if each.kind == "comp")
        return any(each.choice == SWITCH_CODES for each in before[since:])

    def by_root(self, task: PlannedTask) -> bool:
        """Return whether a GPU of each machine does a routine alone, for it has all values."""
        return task.phase == "inter" and any(
            each.phase == "intra1" and each.choice in ("reduce", "gather")
            for step in self.steps
            for each in step
        )


@dataclass(frozen=True)
class Served:
    """A step of a tensor as the plan has it, in ns since the backward propagation began."""

    tensor: int
    step: int
    start: int
    end: int


@dataclass(frozen=True)
class RunPlan:
    """Tensors in backward order, and the order in which each resource serves their steps.

    rates, latencies: of the links inside and between machines, in bit/s and seconds. servers: how
    many hosts add values for the workers, 0 if no tensor goes there.
    """

    machines: int
    gpus: int
    codec: str
    forward_ns: int
    iteration_ns: int
    rates: tuple[float, ...]
    latencies: tuple[float, ...]
    tensors: tuple[PlannedTensor, ...]
    order: Mapping[str, tuple[Served, ...]]
    servers: int = 0

    @property
    def workers(self) -> int:
        """The number of GPUs, each of which is a worker."""
        return self.machines * self.gpus

    @cached_property
    def summed(self) -> tuple[str, ...]:
        """The routines of SUMMED that tensors use."""
        return tuple(routine for routine in SUMMED if routine in self._used)

    @cached_property
    def marked(self) -> bool:
        """Whether there are values that the edge switches compress."""
        return MARKED in self._used

    @cached_property
    def _used(self) -> frozenset[str]:
        steps = (step for tensor in self.tensors for step in tensor.steps)
        return frozenset(task.choice for step in steps for task in step)

    @cached_property
    def values(self) -> int:
        """The number of values of all tensors."""
        return sum(tensor.values for tensor in self.tensors)

    def members(self, worker: int, phase: str) -> tuple[int, ...]:
        """Return the workers of a collective routine of this worker, the root first.

        Workers are numbered machine by machine. Between machines, each talks to those of its own
        number on the others.
        """
        machine, gpu = divmod(worker, self.gpus)
        if phase == "flat":
            return tuple(range(self.workers))
        if phase == "inter":
            return tuple(range(gpu, self.workers, self.gpus))
        return tuple(range(machine * self.gpus, (machine + 1) * self.gpus))


def run_plan(content: Mapping[str, Any]) -> RunPlan:
    """Return the plan in the content of a plan.json; ConfigError if it cannot be run."""
    try:
        plan = _parsed(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"plan: not a plan that can be run ({type(error).__name__}: {error}): write it with"
            " gradplane plan ... --out DIR",
            "plan",
        ) from None
    for tensor in plan.tensors:
        for task in (task for step in tensor.steps for task in step):
            if task.kind.startswith("comm") and task.choice not in ROUTINES:
                raise ConfigError(
                    f"plan: tensor {tensor.name} uses {task.choice}, which runs do not have: plan"
                    f" again with --constraint without={task.choice}",
                    "plan",
                )
    if plan.summed and plan.marked:
        raise ConfigError(
            f"plan: tensors use {plan.summed[0]} and {MARKED}, and switches run one program: plan"
            f" again with --constraint without={MARKED} or without={plan.summed[0]}",
            "plan",
        )
    if plan.servers == 0 and _served(plan.tensors):
        raise ConfigError("plan: tensors go to a server, and its system has no servers", "plan")
    _check_order(plan)
    return plan


def _served(tensors: Sequence[PlannedTensor]) -> bool:
    return any(task.choice == SERVER for t in tensors for step in t.steps for task in step)


def _parsed(content: Mapping[str, Any]) -> RunPlan:
    tensors, end = [], sum(raw["values"] for raw in content["tensors"])
    for raw in content["tensors"]:
        end -= raw["values"]  # the last in backward order is the first of the gradient
        number, steps = 0, []
        for step in raw["steps"]:
            tasks = []
            for task in step["tasks"]:
                names = task["kind"], task["choice"], task["phase"]
                tasks.append(PlannedTask(number, *names, _ns(task["seconds"])))
                number += 1
            steps.append(tuple(tasks))
        times = _ns(raw["compute_seconds"])
        tensors.append(PlannedTensor(raw["name"], end, raw["values"], times, tuple(steps)))
    order = {
        resource: tuple(
            Served(tensor, step, _ns(start), _ns(stop))
            for tensor, step, start, stop in content["order"][resource]
        )
        for resource in RESOURCES
    }
    return RunPlan(
        content["machines"],
        content["gpus"],
        content["codec"],
        _ns(content["forward_seconds"]),
        _ns(content["iteration_seconds"]),
        tuple(1e9 * rate for rate in content["links_gbit"].values()),
        tuple(1e-6 * us for us in content.get("latencies_us", {"intra": 0.0}).values()),
        tuple(tensors),
        order,
        int(content.get("servers", 0)) if _served(tensors) else 0,
    )


def _check_order(plan: RunPlan) -> None:
    """Refuse an order that lacks steps: workers would wait for ever."""
    served = sorted((each.tensor, each.step) for steps in plan.order.values() for each in steps)
    all_steps: Sequence[tuple[int, int]] = [
        (number, step)
        for number, tensor in enumerate(plan.tensors)
        for step in range(COMPUTATION, len(tensor.steps))
    ]
    if served != list(all_steps):
        raise ConfigError(
            "plan: its order does not have each step of each tensor once: write it with gradplane"
            " plan ... --out DIR",
            "plan",
        )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
