"""The experiment that runs a plan: its system as a network of machines, a GPU on each host."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gradplane import codecs
from gradplane.planner.inputs import System
from gradplane.planner.options import MARKED, SWITCHED
from gradplane.planner.planning import Plan

SLOTS = 32  # of a routine: 16 packets in flight fill a scaled link
COMPRESSES = "tos_compress.p4"
QUEUE = 10_000  # packets: no window overflows it
_DRAWS = 1 << 16
_HALVINGS = 30


def experiment(plan: Plan, file: str, rounds: int = 1) -> str:
    """Return the text of the experiment file. file: the plan's name, beside it."""
    system, workers = plan.system, plan.system.machines * plan.system.gpus
    values, marked = sum(row.values for row in plan.rows), _uses(plan, (MARKED,))
    lines = [
        f"# {plan.model.name} with {plan.compression.codec} on {system.name}: predicted"
        f" {1e3 * plan.time:.3f} ms an iteration.",
        *_network(system, workers),
        "",
        "[switch]",
        *([f'program = "{COMPRESSES}"'] if marked else []),
        "latency_us = 0",
        "",
        "[[job]]",
        f'plan = "{file}"',
        f'model = {{ name = "synthetic", values = {values}{_scale(system) if marked else ""} }}',
        f'data = {{ name = "blank", rows = {workers * rounds} }}',
        "epochs = 1",
        "batch = 1",
        *_sums(plan),
        *([f"bound = {system.switch.tos_bound}"] if marked and system.switch else []),
        "",
        "[output]",
        "baseline = false",
    ]
    return "\n".join(lines) + "\n"


def _sums(plan: Plan) -> list[str]:
    """Return the keys of a job whose tensors a switch sums."""
    if not _uses(plan, SWITCHED):
        return []
    widths = plan.compression
    return [f"sum_bits = {widths.sum_bits}", f"code_bits = {widths.code_bits}", f"slots = {SLOTS}"]


def _uses(plan: Plan, routines: Sequence[str]) -> bool:
    return any(task.choice in routines for row in plan.rows for task in row.option)


def _scale(system: System) -> str:
    """Return the model's scale at which its values compress to the system's tos_ratio."""
    assert system.switch is not None and system.switch.tos_ratio is not None
    codec = codecs.get("inceptionn", bound=system.switch.tos_bound)
    low, high = 1e-6, 1e3
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        more = _ratio(codec, middle, system) > system.switch.tos_ratio
        low, high = (low, middle) if more else (middle, high)
    return f", scale = {low:.4g}"


def _ratio(codec: codecs.Codec, scale: float, system: System) -> float:
    """Return bytes a byte of the partial and whole sums that a ring between the machines passes."""
    drawn = scale * np.random.default_rng(0).standard_normal(_DRAWS)
    sums = [*range(1, system.machines), *[system.machines] * (system.machines - 1)]
    sizes = [
        len(codec.encode((math.sqrt(members * system.gpus) * drawn).astype(np.float32))[0])
        for members in sums
    ]
    return sum(sizes) / (4 * _DRAWS * len(sizes))


def _network(system: System, workers: int) -> list[str]:
    inside, between, switch = system.intra, system.inter, system.switch
    fabric = (switch.fabric_gbit if switch else None) or between.gbit
    edges = [f'edge_rate = "{between.gbit * 1e9:.0f}bit"'] if switch and switch.edges else []
    return [
        "",
        "[topology]",
        f"workers = {workers}",
        'kind = "machines"',
        f"gpus = {system.gpus}",
        f'rate = "{inside.gbit * 1e9:.0f}bit"',
        f'delay = "{inside.latency_us * 1000:.0f}ns"',
        f"queue = {QUEUE}",
        *edges,
        f'fabric_rate = "{fabric * 1e9:.0f}bit"',
        f'fabric_delay = "{between.latency_us * 500:.0f}ns"',
        f"fabric_queue = {QUEUE}",
    ]
