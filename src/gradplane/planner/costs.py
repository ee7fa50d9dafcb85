"""The cost of each task of an option on a system: the empirical models of Espresso's section 4.3.

Collectives have the usual costs (Thakur et al.; NCCL): a ring passes (p - 1) / p of the bytes in
p - 1 messages, a tree all of them in log2 p. A machine's GPUs share its network interface, and its
CPUs serve all its GPUs; a GPU or CPU that holds m compressed pieces decompresses m times. Adding
decompressed values is part of the decompression. A flat collective runs on the slower network.

Values that a switch adds travel in packets of `payload` bytes, which take `passes` passes
through the recirculation ports that all machines share, or in packets of one pass, with more
headers: the quicker of both. `slots` packets are in flight at most. The conversion to int32 is
free. Where a system has a framing, the switch is the emulated one: values are eight digits of four
bits, whose sums are as wide as codes' sums. Values that the edge switches compress (ToS) cross the
host's link as they are, and the links between those switches compressed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradplane.planner.cost_kernels import Floats, Ints, Link, task_times
from gradplane.planner.inputs import Compression, Curve, System
from gradplane.planner.options import Option, Task

RESOURCES = ("gpu", "cpu", "intra", "inter")
GPU, CPU, INTRA, INTER = range(4)

_PHASES = {"flat": 0, "intra1": 1, "inter": 2, "intra2": 3}
_CODES = {
    ("comp", "gpu"): 0, ("comp", "cpu"): 1, ("decomp", "gpu"): 2, ("decomp", "cpu"): 3,
    ("comm", "allreduce"): 4, ("comm1", "reduce-scatter"): 5, ("comm1", "reduce"): 6,
    ("comm2", "allgather"): 7, ("comm2", "broadcast"): 8,
    ("comm2_comp", "allgather"): 7, ("comm2_comp", "broadcast"): 8,
    ("comm_comp", "allgather"): 9,
    ("comm1_comp", "alltoall"): 10, ("comm1_comp", "gather"): 11,
    ("comm", "switch-int32"): 12, ("comm", "tos"): 13, ("comm", "server"): 14,
    ("comm_comp", "switch-codes"): 15,
}  # fmt: skip


class CostModel:
    """The costs of a codec on a system.

    task_times(option, values): its tasks' resources and seconds, for a tensor of so many values.
    """

    def __init__(self, compression: Compression, system: System) -> None:
        self.link = _link(compression, system)
        self.curves = _curves(compression)

    def task_times(self, option: Option, values: int) -> list[tuple[Task, int, float]]:
        """Return each task of an option with its resource and its seconds."""
        codes = encode([option])[0]
        resources, seconds = np.empty(len(option), np.int64), np.empty(len(option))
        before = np.empty((len(codes), 5))
        task_times(codes, float(values), self.link, self.curves, resources, seconds, before, 0)
        return list(zip(option, resources.tolist(), seconds.tolist(), strict=True))

    def steps(self, option: Option, values: int) -> list[tuple[int, list[tuple[Task, float]]]]:
        """Return an option's steps as the timeline has them: a resource, and its tasks' seconds.

        Neighbouring tasks on a resource are one step. A task that takes no time belongs to the step
        before it, a first one to the step after it.
        """
        found: list[tuple[int, list[tuple[Task, float]]]] = []
        idle: list[tuple[Task, float]] = []
        for task, resource, seconds in self.task_times(option, values):
            if seconds <= 0 and not found:
                idle.append((task, 0.0))
            elif seconds <= 0 or (found and found[-1][0] == resource):
                found[-1][1].append((task, max(seconds, 0.0)))
            else:
                found.append((resource, [*idle, (task, seconds)]))
                idle = []
        return found


def encode(options: Sequence[Option]) -> Ints:
    """Return the options as numbers: a row each, -1 after its last task."""
    longest = max(map(len, options), default=0) + 1
    rows = np.full((len(options), longest), -1, np.int64)
    for row, option in zip(rows, options, strict=True):
        row[: len(option)] = [_CODES[t.kind, t.choice] * 4 + _PHASES[t.phase] for t in option]
    return rows


def offered(compression: Compression, system: System) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the network offers besides collectives, and the tree's shapes on this system."""
    names, switch = [], system.switch
    if switch is not None and system.machines <= switch.rack_machines:
        names += ["switch-int32"] if "int32" in switch.add else []
        names += ["switch-codes"] if "codes" in switch.add and compression.sums else []
    if switch is not None and switch.tos_ratio is not None:
        names.append("tos")
    names += ["server"] if system.servers else []
    one_level = system.machines == 1 or system.gpus == 1
    return () if system.machines == 1 else tuple(names), ("flat",) if one_level else (
        "flat",
        "hierarchical",
    )


def _link(compression: Compression, system: System) -> Link:
    """Return the numbers of the cost model. Where there is no such limit, it is infinite."""
    switch, framing = system.switch, system.framing
    inter = system.inter if system.machines > 1 else system.intra
    host = inter.gbit
    fabric = switch.fabric_gbit if switch and switch.fabric_gbit else host
    window = math.inf
    if switch and inter.latency_us:
        window = switch.slots * switch.payload / (2e-6 * inter.latency_us)
    numbers = Link(
        machines=system.machines,
        gpus=system.gpus,
        inside_rate=system.intra.gbit * 125e6,
        inside_latency=system.intra.latency_us * 1e-6,
        rate=min(host, fabric) * 125e6,
        latency=inter.latency_us * 1e-6,
        ratio=compression.ratio,
        header=compression.header + (framing.piece if framing else 0),
        code_bytes=compression.code_bits / 8,
        sum_bytes=compression.sum_bits / 8,
        window=window,
        recirculation=(switch.recirculation_gbit if switch else math.inf) * 125e6,
        passes=switch.passes if switch else 1,
        host=host * 125e6,
        fabric=fabric * 125e6,
        tos_ratio=(switch.tos_ratio if switch else None) or 1,
        servers=max(system.servers, 1),
        between=INTER if system.machines > 1 else INTRA,
        payload=switch.payload if switch else math.inf,
        message_payload=framing.payload if framing else math.inf,
        packet=framing.packet if framing else 0,
        message=framing.message if framing else 0,
        stored=_stores(host, fabric, switch is not None and switch.edges) if framing else 0,
        acknowledgement=framing.acknowledgement if framing else 0,
        padded=compression.padded,
        sums=framing.sums if framing else 0,
        aggregation=framing.aggregation if framing else 0,
        marked=framing.marked if framing else math.inf,
        marked_packet=framing.marked_packet if framing else 0,
        shim=framing.shim if framing else 0,
    )
    return Link(*map(float, numbers))  # of one type: the kernels are compiled once


def _stores(host: float, fabric: float, edges: bool) -> float:
    """Return how often a message's first packet is stored whole, in times of the slowest link.

    Between machines are two links to a spine; with edge switches, two of machines and two of those.
    """
    if not edges:
        return 1.0
    slowest = min(host, fabric)
    return 2 * slowest / host + 2 * slowest / fabric - 1


def _curves(compression: Compression) -> Floats:
    """Return rows of one length: sizes, compression, decompression of the GPU, then of the CPU."""
    sizes = sorted({0.0, *compression.gpu.values, *compression.cpu.values})
    rows: list[Floats] = []
    for curve in (compression.gpu, compression.cpu):
        rows += [np.array(sizes), _at(curve, curve.compress, sizes)]
        rows += [_at(curve, curve.decompress, sizes)]
    return np.array(rows)


def _at(curve: Curve, times: Sequence[float], sizes: Sequence[float]) -> Floats:
    """Interpolate the times at sizes; beyond either end, extend the line of the last two points."""
    result = np.interp(sizes, curve.values, times)
    for index, size in enumerate(sizes):
        low = size < curve.values[0]
        if low or size > curve.values[-1]:
            a, b = (0, 1) if low else (-2, -1)
            slope = (times[b] - times[a]) / (curve.values[b] - curve.values[a])
            result[index] = max(times[b] + slope * (size - curve.values[b]), 0.0)
    return result
