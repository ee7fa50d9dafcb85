"""A plan: which option each tensor takes, why, and how long an iteration takes.

    >>> from gradplane.planner.planning import make
    >>> plan = make("lstm", "dgc", "pcie-25g")
    >>> len(plan.rows)
    10

Beside it are the times without compression, with all tensors compressed, and of searches that are
restricted as published systems are: they take for each tensor what is quickest for it alone.

`scaled` scales a job down, so that an emulated network of packets runs it in the same time: with
fewer values, links slower by the same factor and a codec that takes its time for as many values
more, computation, codecs and links take what they take at full size; latencies stay. Only the
packets are larger beside the tensors, which the framing accounts for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradplane import codecs
from gradplane.planner import search
from gradplane.planner.balance import lower_bound
from gradplane.planner.compiled import Timeline, evaluate
from gradplane.planner.costs import RESOURCES, CostModel, offered
from gradplane.planner.inputs import (
    Compression,
    Curve,
    Framing,
    Model,
    Network,
    PlannerError,
    System,
    load,
    load_job,
)
from gradplane.planner.job import Builder, Candidates
from gradplane.planner.options import Option, draw
from gradplane.planner.search import choose
from gradplane.planner.timeline import TimelineEvent, bubbles, events

FP32 = "FP32 (no compression)"
TIE = 1e-12  # seconds
EXPLAINED = 1000  # tensors up to which each row says what its next best option would cost
RESTRICTED = {
    "like HiPress": ("device=gpu", "compress=inter", "shape=hierarchical"),
    "like HiTopKComm": (
        "device=gpu", "compress=inter", "shape=hierarchical", "compress=all",
        "without=alltoall", "without=gather",
    ),
    "like BytePS-Compress": ("device=cpu", "compress=inter", "shape=hierarchical"),
}  # fmt: skip
"""The restricted searches: the options that a published system has, each tensor for itself."""


@dataclass(frozen=True)
class Row:
    """A tensor of the plan: its option, the next best one and what that would cost (seconds)."""

    name: str
    values: int
    option: Option
    next_best: Option | None
    loss: float

    @property
    def reason(self) -> str:
        """The reason against the next best option."""
        if self.next_best is None:
            return "no other option"
        if self.loss <= TIE:
            return f"a tie: {self.next_best}"
        return f"+{self.loss * 1e3:.3g} ms: {self.next_best}"


@dataclass(frozen=True)
class Plan:
    """A plan; times are of a whole iteration, in seconds.

    references: by name, the time of other ways to choose; None where their options are not there.
    bound: no strategy is quicker; above EXPLAINED tensors, none of the candidates. options: how
    many the tree has.
    """

    model: Model
    compression: Compression
    system: System
    constraints: tuple[str, ...]
    time: float
    bound: float
    references: dict[str, float | None]
    options: int
    rows: tuple[Row, ...]
    events: tuple[TimelineEvent, ...]

    def to_json(self) -> str:
        """Return the plan as JSON: all that an experiment needs to run it.

        Times are in seconds. The tasks of a tensor form steps, each on one resource; `order` has
        for each resource the steps (tensor, number) as the timeline serves them, where -1 is the
        tensor's computation, with their planned beginning and end.
        """
        costs = CostModel(self.compression, self.system)
        tensors = [
            {
                "name": row.name,
                "values": row.values,
                "compute_seconds": tensor.compute,
                "option": str(row.option),
                "steps": [
                    {
                        "resource": RESOURCES[resource],
                        "tasks": [
                            {**task._asdict(), "seconds": seconds} for task, seconds in tasks
                        ],
                    }
                    for resource, tasks in costs.steps(row.option, row.values)
                ],
            }
            for row, tensor in zip(self.rows, self.model.tensors, strict=True)
        ]
        order = {
            name: [
                [event.tensor, event.step, event.start, event.end]
                for event in self.events
                if RESOURCES[event.resource] == name
            ]
            for name in RESOURCES
        }
        content: dict[str, Any] = {
            "model": self.model.name,
            "codec": self.compression.codec,
            "codec_parameters": self.compression.parameters,
            "system": self.system.name,
            "machines": self.system.machines,
            "gpus": self.system.gpus,
            "servers": self.system.servers,
            "links_gbit": self.system.links_gbit,
            "latencies_us": {
                "intra": self.system.intra.latency_us,
                "inter": self.system.inter.latency_us,
            },
            "constraints": list(self.constraints),
            "iteration_seconds": self.time,
            "forward_seconds": self.model.forward,
            "bound_seconds": self.bound,
            "references": self.references,
            "tensors": tensors,
            "order": order,
        }
        return json.dumps(content) + "\n"

    def speedup(self, seconds: float) -> float:
        """Return how many times as long another way takes; 1 where this one takes no time."""
        return seconds / self.time if self.time else 1.0

    def busy(self) -> dict[str, float]:
        """Return how long each resource is busy, in seconds."""
        times = dict.fromkeys(RESOURCES, 0.0)
        for event in self.events:
            times[RESOURCES[event.resource]] += event.end - event.start
        return times

    def bubbles(self) -> list[tuple[float, float]]:
        """Return the gaps between communications in which the links wait for tensors."""
        return bubbles(self.events)


def make(
    model: str | Path,
    codec: str | Path,
    system: str | Path,
    constraints: Sequence[str] = (),
    values: int | None = None,
) -> Plan:
    """Return the plan for a model with a codec on a system, each a file or a shipped one's name.

    values: scale the job to so many (`scale`). Raises PlannerError, which says what is wrong.
    """
    job = load_job(model, codec, system)
    if values is not None:
        job = scaled(*job, values)
    return plan(*job, tuple(constraints))


def options(codec: str | Path, system: str | Path, constraints: Sequence[str] = ()) -> str:
    """Return the tree of options as text, and their number in the last line."""
    builder = Builder(load(Compression, codec), load(System, system), constraints)
    found = builder.tables.options
    return f"{draw(sorted(found))}\n{len(found):,} options (each (de)compression: GPU or CPU)"


def plan(
    model: Model, compression: Compression, system: System, constraints: tuple[str, ...] = ()
) -> Plan:
    """Return the plan for read inputs; PlannerError for constraints that cannot be met."""
    compute, sizes = [t.compute for t in model.tensors], [t.values for t in model.tensors]
    builder = Builder(compression, system, constraints)
    timeline = choose(builder, compute, sizes)
    if len(sizes) <= EXPLAINED:
        others = _with_fewer_options(compression, system, constraints)
        timelines = [timeline, *(choose(other, compute, sizes) for other in others)]
        timeline = _over_the_tree(builder, min(timelines, key=lambda each: each.time))

    def restricted(*names: str, myopic: bool = True) -> float | None:
        try:
            other = Builder(compression, system, names).job(compute, sizes)
        except PlannerError:
            return None
        chosen = quickest_alone(other) if myopic else search.search(other)
        return model.forward + evaluate(other, chosen)

    references = {
        FP32: restricted("compressions<=0"),
        "all compressed": restricted("compress=all", myopic=False),
        **{name: restricted(*names) for name, names in RESTRICTED.items()},
    }
    full = builder.job(compute, sizes)
    algorithms = search.algorithm2(full, search.algorithm1(full), search.COMBINATIONS)
    references["Espresso's Algorithms 1 and 2"] = model.forward + evaluate(full, algorithms)
    return Plan(
        model, compression, system, constraints, model.forward + timeline.time,
        model.forward + lower_bound(timeline.job), references, len(builder.tables.options),
        tuple(_rows(model, timeline)), tuple(events(timeline.job, timeline.strategy.tolist())),
    )  # fmt: skip


def _with_fewer_options(
    compression: Compression, system: System, constraints: tuple[str, ...]
) -> Iterator[Builder]:
    """Yield restrictions under which the choice, which is not exact, may find more."""
    network, _ = offered(compression, system)
    alone = tuple(f"without={routine}" for routine in network)
    for names in dict.fromkeys((("compress=all",), alone, ("compress=all", *alone))):
        if names:
            with suppress(PlannerError):  # no option is left
                yield Builder(compression, system, (*constraints, *names))


def quickest_alone(job: Candidates) -> list[int]:
    """Return the strategy in which each tensor takes the option with the least sum of times."""
    slots = job.loads.sum(axis=2).argmin(axis=1)
    return [int(slot) for slot in slots[job.group]]


def _over_the_tree(builder: Builder, timeline: Timeline) -> Timeline:
    """Return the timeline after each option of the tree was tried for each tensor."""
    job, slot = timeline.job, {option: n for n, option in enumerate(builder.tables.options)}
    chosen = job.option[job.group, timeline.strategy]
    whole = builder.job(job.compute, job.size, every=True)
    found = Timeline(whole, [slot[job.options[at]] for at in chosen])
    found.improve()
    return found


def _rows(model: Model, timeline: Timeline) -> Iterator[Row]:
    """Yield a row for each tensor."""
    job, explained = timeline.job, len(model.tensors) <= EXPLAINED
    for tensor, gradient in enumerate(model.tensors):
        options = job.option[job.group[tensor]]
        option = job.options[options[timeline.strategy[tensor]]]
        slot, time = timeline.next_best(tensor) if explained else (0, np.inf)
        known = job.options[options[slot]] if time < np.inf else None
        loss = time - timeline.time if known else 0.0
        yield Row(gradient.name, gradient.values, option, known, loss)


STREAMS = Framing(payload=1400, packet=70, acknowledgement=98, message=20, piece=12)
"""The framing of gradplane's streams: segments of 1400 bytes behind 70 bytes of headers, each
acknowledged in the other direction by a packet of 98 bytes."""


def scaled(
    model: Model, compression: Compression, system: System, values: int
) -> tuple[Model, Compression, System]:
    """Return a model of about so many values with a codec and a system that fit it.

    A tensor keeps at least one value.
    """
    total = sum(tensor.values for tensor in model.tensors)
    tensors = tuple(
        tensor.model_copy(update={"values": max(round(tensor.values * values / total), 1)})
        for tensor in model.tensors
    )
    factor = sum(tensor.values for tensor in tensors) / total
    links: dict[str, Any] = {
        name: _slower(getattr(system, name), factor) for name in ("intra", "inter")
    }
    if system.switch and system.switch.fabric_gbit:
        fabric = {"fabric_gbit": system.switch.fabric_gbit * factor}
        links |= {"switch": system.switch.model_copy(update=fabric)}
    curves = {"gpu": _curve(compression.gpu, factor), "cpu": _curve(compression.cpu, factor)}
    widths = _widths(compression, system.machines)
    return (
        model.model_copy(update={"tensors": tensors}),
        compression.model_copy(update=curves | widths),
        system.model_copy(update={**links, "framing": STREAMS}),
    )


def _widths(compression: Compression, machines: int) -> dict[str, int]:
    """Return the widths of the codec's codes, and of digits, and of a switch's sums of them over
    machines."""
    known = [codecs.get("switchml", workers=machines)]
    if compression.sums:
        known.append(codecs.get(compression.codec, **compression.parameters))
    needed = max(codec.sum_bits(machines) for codec in known)
    wide = min((width for width in codecs.SUM_WIDTHS if width >= needed), default=needed)
    return {"sum_bits": wide, "code_bits": max(codecs.code_bits(len(c.table)) for c in known)}


def _slower(network: Network, factor: float) -> Network:
    return network.model_copy(update={"gbit": network.gbit * factor})


def _curve(curve: Curve, factor: float) -> Curve:
    return curve.model_copy(update={"values": tuple(size * factor for size in curve.values)})
