"""What each task of an option costs on a system: the empirical models of Espresso's section 4.3.

Collectives have the usual costs (Thakur et al.; NCCL): a ring passes (p - 1) / p of the bytes in
p - 1 messages, a tree all of them in log2 p. A machine's GPUs share its network interface, and its
CPUs serve all its GPUs; a GPU or CPU that holds m compressed pieces decompresses m times. Adding
decompressed values is part of the decompression. A flat collective runs on the slower network.

What a switch adds travels in packets of `payload` bytes, which go round its pipeline `passes` times
over the recirculation ports that all machines share, or in packets of one pass, with more headers:
the quicker of both. `slots` packets are in flight at most. The conversion to int32 is free. Values
that the edge switches compress (ToS) cross the host's link as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gradplane.planner.inputs import Compression, Curve, System
from gradplane.planner.options import Option, Task

RESOURCES = ("gpu", "cpu", "intra", "inter")
GPU, CPU, INTRA, INTER = range(4)

_PHASES = {"flat": 0, "intra1": 1, "inter": 2, "intra2": 3}
_INDIVISIBLE_GATHER = 9
_CODES = {
    ("comp", "gpu"): 0, ("comp", "cpu"): 1, ("decomp", "gpu"): 2, ("decomp", "cpu"): 3,
    ("comm", "allreduce"): 4, ("comm1", "reduce-scatter"): 5, ("comm1", "reduce"): 6,
    ("comm2", "allgather"): 7, ("comm2", "broadcast"): 8,
    ("comm2_comp", "allgather"): 7, ("comm2_comp", "broadcast"): 8,
    ("comm_comp", "allgather"): _INDIVISIBLE_GATHER,
    ("comm1_comp", "alltoall"): 10, ("comm1_comp", "gather"): 11,
    ("comm", "switch-int32"): 12, ("comm", "tos"): 13, ("comm", "server"): 14,
    ("comm_comp", "switch-codes"): 15,
}  # fmt: skip

HEADERS = 90  # bytes: Ethernet with its gap, IPv4, UDP, the aggregation header

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class CostModel:
    """The costs of a codec on a system.

    task_times(option, values): its tasks' resources and seconds, for a tensor of so many values.
    """

    def __init__(self, compression: Compression, system: System) -> None:
        self.link = _links(compression, system)
        self.curves = _curves(compression)

    def task_times(self, option: Option, values: int) -> list[tuple[Task, int, float]]:
        """Return each task of an option with its resource and its seconds."""
        codes = encode([option])[0]
        resources, seconds = np.empty(len(option), np.int64), np.empty(len(option))
        task_times(codes, float(values), self.link, self.curves, resources, seconds)
        return list(zip(option, resources.tolist(), seconds.tolist(), strict=True))


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
    return tuple(names), ("flat",) if one_level else ("flat", "hierarchical")


def _links(compression: Compression, system: System) -> Floats:
    """The numbers of the cost model, in the order in which `task_times` unpacks them."""
    switch = system.switch
    inter = system.inter if system.machines > 1 else system.intra
    host = inter.gbit
    fabric = switch.fabric_gbit if switch and switch.fabric_gbit else host
    window = math.inf
    if switch and inter.latency_us:
        window = switch.slots * switch.payload / (2e-6 * inter.latency_us)
    recirculation = switch.recirculation_gbit if switch else math.inf
    return np.array(
        [
            system.machines, system.gpus,
            system.intra.gbit * 125e6, system.intra.latency_us * 1e-6,
            min(host, fabric) * 125e6, inter.latency_us * 1e-6,
            compression.ratio, compression.header,
            compression.code_bits / 8, compression.sum_bits / 8,
            window, recirculation * 125e6, switch.passes if switch else 1.0,
            host * 125e6, fabric * 125e6, (switch.tos_ratio if switch else None) or 1.0,
            max(system.servers, 1), INTER if system.machines > 1 else INTRA,
            switch.payload if switch else math.inf,
        ]
    )  # fmt: skip


def _curves(compression: Compression) -> Floats:
    """Rows: sizes, compression, decompression of the GPU, then of the CPU, of one length."""
    sizes = sorted({0.0, *compression.gpu.values, *compression.cpu.values})
    rows: list[Floats] = []
    for curve in (compression.gpu, compression.cpu):
        rows += [np.array(sizes), _at(curve, curve.compress, sizes)]
        rows += [_at(curve, curve.decompress, sizes)]
    return np.array(rows)


def _at(curve: Curve, times: Sequence[float], sizes: Sequence[float]) -> Floats:
    """The times at sizes: interpolated, and beyond either end on the line of the last two."""
    result = np.interp(sizes, curve.values, times)
    for index, size in enumerate(sizes):
        low = size < curve.values[0]
        if low or size > curve.values[-1]:
            a, b = (0, 1) if low else (-2, -1)
            slope = (times[b] - times[a]) / (curve.values[b] - curve.values[a])
            result[index] = max(times[b] + slope * (size - curve.values[b]), 0.0)
    return result


@njit(cache=True, nogil=True)
def _curve(curves: Floats, row: int, size: float) -> float:
    sizes, times = curves[row // 3 * 3], curves[row]
    last = sizes.size - 1
    at = 1
    while at < last and sizes[at] < size:
        at += 1
    slope = (times[at] - times[at - 1]) / (sizes[at] - sizes[at - 1])
    time: float = max(times[at] + slope * (size - sizes[at]), 0.0)
    return time


@njit(cache=True, nogil=True)
def _switched(up: float, down: float, members: float, rate: float, link: Floats) -> float:
    """The time in which a switch adds `up` bytes of each machine, and sends `down` to each."""
    window, recirculation, passes, payload = link[10], link[11], link[12], link[18]
    most = max(up, down)
    large = most * (1 + HEADERS / payload) / min(rate, window)
    again = members * up * (passes - 1) / recirculation
    small = most * (1 + HEADERS * passes / payload) / min(rate, window / passes)
    time: float = min(max(large, again), small)
    return time


@njit(cache=True, nogil=True)
def task_times(
    codes: Ints, values: float, link: Floats, curves: Floats, resources: Ints, seconds: Floats
) -> int:
    """Write the resource and the seconds of each task of an encoded option; return their number.

    length: values in a piece of one holder; pieces: how many, not yet added; holders: GPUs of a
    machine with different values; wide: bytes of sums over those of codes.
    """
    machines, gpus, header, ratio = link[0], link[1], link[7], link[6]
    length, pieces, holders, wide, compressed = values, 1.0, gpus, 1.0, False
    count = 0
    for code in codes:
        if code < 0:
            break
        task, phase = code // 4, code % 4
        if task < 4:
            device = task % 2
            held = length * holders if device == 1 else length
            if task < 2:
                time = _curve(curves, 3 * device + 1, held)
                compressed = True
            else:
                time = pieces * _curve(curves, 3 * device + 2, held)
                compressed, pieces, wide = False, 1.0, 1.0
            resources[count], seconds[count] = device, time
            count += 1
            continue
        inside = phase == 1 or phase == 3
        members = gpus if inside else machines if phase == 2 else machines * gpus
        rate, latency = (link[2], link[3]) if inside else (link[4], link[5])
        if phase == 0 and machines > 1 and gpus > 1:
            rate, latency = min(link[2], link[4]), max(link[3], link[5])
        flows = holders if phase == 2 else 1.0  # on a machine's interface at once
        each = wide * pieces * (header + 4 * ratio * length) if compressed else 4 * length
        away = (members - 1) / members
        if phase == 0 and machines > 1:
            away = gpus * (machines - 1) / machines  # what a machine's GPUs send elsewhere
        steps, tree = members - 1, math.ceil(math.log2(members))
        if task == 4:
            time = 2 * steps * latency + 2 * (members - 1) / members * each * flows / rate
        elif task == 5:
            time = steps * latency + (members - 1) / members * each * flows / rate
            length /= members
        elif task == 6:
            time = tree * latency + each * flows / rate
        elif task == 7:
            time = steps * latency + (members - 1) * each * flows / rate
            length *= members
        elif task == 8:
            time = tree * latency + each * flows / rate
        elif task == 9:
            time = steps * latency + (members - 1) * each * flows / rate
            pieces *= members
        elif task == 10:
            time = steps * latency + away * each * flows / rate
            length /= members
            pieces *= members
        elif task == 11:
            time = steps * latency + away * members * each * flows / rate
            pieces *= members
        elif task == 12:
            wire = each * flows
            time = 2 * latency + _switched(wire, wire, members, rate, link)
        elif task == 13:
            slowest = max(1 / link[13], link[15] / link[14])
            time = 2 * steps * latency + 2 * (members - 1) / members * each * flows * slowest
        elif task == 14:
            time = 2 * latency + max(1.0, members / link[16]) * each * flows / rate
        else:
            up, down = link[8] * length * flows, link[9] * length * flows
            time = 4 * latency + _switched(up, down, members, rate, link)
            wide = link[9] / link[8]
        if phase == 1 and (task == 6 or task == 11):
            holders = 1.0
        if phase == 3 or (phase == 0 and (task == 4 or 6 <= task <= 9 or task >= 11)):
            holders = 1.0  # all GPUs of the machine hold the same
        resources[count] = INTRA if inside else int(link[17])
        seconds[count] = time
        count += 1
    return count
