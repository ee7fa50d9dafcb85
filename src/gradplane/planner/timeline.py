"""The timeline of a strategy: when each resource does what (Espresso's F(S)), in plain Python.

Four resources, each of which serves one step at a time: gpu, cpu, the link inside the machines and
the link between them. Where the paper is silent, these rules hold:

- nothing is preempted; a resource serves in the order in which steps become ready, ties in backward
  order;
- the GPU computes the tensors in backward order; a compression at the start of an option follows
  its tensor's computation at once;
- decompression occupies its resource, and the iteration ends when everything has ended.

`compiled` does the same in machine code; tests hold both equal.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from gradplane.planner.cost_kernels import Ints
from gradplane.planner.costs import GPU, INTRA
from gradplane.planner.job import Candidates


class TimelineEvent(NamedTuple):
    """A task of a resource for a tensor; step: its number in the option, -1 for the computation."""

    resource: int
    tensor: int
    step: int
    start: float
    end: float


def events(job: Candidates, strategy: Sequence[int]) -> list[TimelineEvent]:
    """Return all events of a strategy (the slot of each tensor), in the order of their beginning.

    Raises ValueError if the strategy is not a slot for each tensor.
    """
    check(job, strategy)
    free = [0.0] * 4
    found: list[TimelineEvent] = []
    waiting: list[tuple[float, int, int]] = [(0.0, 0, -1)]  # ready, tensor, step
    steps = [job.steps(tensor, slot) for tensor, slot in enumerate(strategy)]

    def serve(resource: int, tensor: int, step: int, ready: float, duration: float) -> float:
        start = max(ready, free[resource])
        free[resource] = start + duration
        found.append(TimelineEvent(resource, tensor, step, start, free[resource]))
        return free[resource]

    while waiting:
        ready, tensor, step = heapq.heappop(waiting)
        if step < 0:
            end = serve(GPU, tensor, -1, ready, float(job.compute[tensor]))
            step = 0
            if steps[tensor] and steps[tensor][0][0] == GPU:
                end = serve(GPU, tensor, 0, end, steps[tensor][0][1])
                step = 1
            if tensor + 1 < len(steps):
                heapq.heappush(waiting, (end, tensor + 1, -1))
        else:
            end = serve(steps[tensor][step][0], tensor, step, ready, steps[tensor][step][1])
            step += 1
        if step < len(steps[tensor]):
            heapq.heappush(waiting, (end, tensor, step))
    return sorted(found, key=lambda event: (event.start, event.end, event.tensor))


def backward_time(job: Candidates, strategy: Sequence[int]) -> float:
    """Return F(S): the time from the first computation to the end of the last step."""
    return max(event.end for event in events(job, strategy))


def bubbles(timeline: Sequence[TimelineEvent]) -> list[tuple[float, float]]:
    """Return the positive gaps between communications, from the first bubble to the last.

    In a bubble the links wait for tensors: neither link is busy, and no tensor has communicated and
    will again. (A gap while the only tensor on its way is compressed again is none: what came
    before it would have delayed it.)
    """
    spans: dict[int, tuple[float, float]] = {}
    for event in timeline:
        if event.resource >= INTRA:
            start, end = spans.get(event.tensor, (event.start, event.end))
            spans[event.tensor] = min(start, event.start), max(end, event.end)
    gaps: list[tuple[float, float]] = []
    until = math.inf
    for start, end in sorted(spans.values()):
        if start > until:
            gaps.append((until, start))
        until = end if until == math.inf else max(until, end)
    return gaps


def check(job: Candidates, strategy: Sequence[int] | Ints) -> None:
    """Raise ValueError if a strategy is not a slot for each tensor."""
    if len(strategy) != len(job.size):
        raise ValueError(f"{len(strategy)} slots for {len(job.size)} tensors: one for each")
    for tensor, slot in enumerate(strategy):
        if not 0 <= slot < job.count[job.group[tensor]]:
            last = job.count[job.group[tensor]] - 1
            raise ValueError(f"slot {slot} of tensor {tensor}: it must be from 0 to {last}")
