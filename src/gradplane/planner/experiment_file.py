"""The experiment that runs a plan: its system as a network of machines, a GPU on each host."""

from __future__ import annotations

from gradplane.planner.inputs import System
from gradplane.planner.options import SWITCHED
from gradplane.planner.plan import Plan

SLOTS = 32  # of a routine: 16 packets in flight fill a scaled link
QUEUE = 10_000  # packets: no window overflows it


def experiment(plan: Plan, file: str, rounds: int = 1) -> str:
    """Return the text of the experiment file. file: the plan's name, beside it."""
    system, workers = plan.system, plan.system.machines * plan.system.gpus
    values = sum(row.values for row in plan.rows)
    lines = [
        f"# {plan.model.name} with {plan.compression.codec} on {system.name}: predicted"
        f" {1e3 * plan.time:.3f} ms an iteration.",
        *_network(system, workers),
        "",
        "[switch]",
        "latency_us = 0",
        "",
        "[[job]]",
        f'plan = "{file}"',
        f'model = {{ name = "synthetic", values = {values} }}',
        f'data = {{ name = "blank", rows = {workers * rounds} }}',
        "epochs = 1",
        "batch = 1",
        *_sums(plan),
        "",
        "[output]",
        "baseline = false",
    ]
    return "\n".join(lines) + "\n"


def _sums(plan: Plan) -> list[str]:
    """Return the keys of a job whose tensors a switch sums."""
    if not any(task.choice in SWITCHED for row in plan.rows for task in row.option):
        return []
    return [f"sum_bits = {plan.compression.sum_bits}", f"slots = {SLOTS}"]


def _network(system: System, workers: int) -> list[str]:
    inside, between = system.intra, system.inter
    return [
        "",
        "[topology]",
        f"workers = {workers}",
        'kind = "machines"',
        f"gpus = {system.gpus}",
        f'rate = "{inside.gbit * 1e9:.0f}bit"',
        f'delay = "{inside.latency_us * 1000:.0f}ns"',
        f"queue = {QUEUE}",
        f'fabric_rate = "{between.gbit * 1e9:.0f}bit"',
        f'fabric_delay = "{between.latency_us * 500:.0f}ns"',
        f"fabric_queue = {QUEUE}",
    ]
