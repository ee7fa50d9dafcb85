"""Searches for a strategy: Espresso's Algorithms 1 and 2, ours, and the optimum of small jobs.

A strategy is the slot of each tensor (see `job`). Times are F(S) of `timeline`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from gradplane.planner.compiled import SLACK, Timeline
from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Job

Strategy = list[int]

COMBINATIONS = 1000  # of offloads that search() lets Algorithm 2 go through
EXHAUSTIVE = 3000  # strategies up to which search() evaluates them all
PAIRS = 24  # tensors up to which search() changes two at once
WORK = 3_000_000  # steps served that search() may spend on its local search of a small job
WORK_A_TENSOR = 20_000  # ... and for each tensor of a large one


def uncompressed(job: Job) -> Strategy:
    """Return the strategy without compression: each tensor's quickest such option by itself."""
    slots = []
    for group in range(len(job.count)):
        tensor = int(np.flatnonzero(job.group == group)[0])
        plain = [s for s in range(job.count[group]) if job.kind[group, s] == PLAIN] or [0]
        slots.append(min(plain, key=lambda s: sum(d for _, d in job.steps(tensor, s))))
    return [slots[group] for group in job.group]


def algorithm1(job: Job) -> Strategy:
    """Return the strategy of Algorithm 1: compression with GPUs.

    Tensors are visited by descending size, among equal sizes those nearer to the output layer (the
    last in backward order) first. One without compression that is communicated before a bubble is
    never visited again. Ties keep the earlier candidate.
    """
    timeline = Timeline(job, uncompressed(job))
    removed = timeline.before_bubble()
    for tensor in sorted(range(len(job.size)), key=lambda t: (-job.size[t], -t)):
        if tensor in removed:
            continue
        slot, _ = timeline.best_slot(tensor, (PLAIN, ON_GPU))
        if slot != timeline.strategy[tensor]:
            timeline.change(tensor, slot)
            removed |= timeline.before_bubble()
    return [int(slot) for slot in timeline.strategy]


def algorithm2(job: Job, strategy: Sequence[int], combinations: int | None = None) -> Strategy:
    """Return the strategy of Algorithm 2: which compressions go to the CPU.

    Of each group of tensors of one size and option that the GPU compresses, the u farthest from the
    output layer are offloaded, with all their compression and decompression. Every combination of
    the groups' u counts; ties go to the fewest offloads. Above `combinations`, where given, the
    groups are gone through one after another instead, until none brings anything.
    """
    timeline = Timeline(job, strategy)
    groups = _offloadable(job, strategy)
    if combinations is None or prod(len(members) + 1 for members in groups) <= combinations:
        return _every_offload(timeline, groups)
    return _offload_by_group(timeline, groups)


def search(job: Job) -> Strategy:
    """Return the strategy of our search, never slower than that of Algorithms 1 and 2.

    A job with few strategies is searched exhaustively. For another one a local search starts at the
    result of the two algorithms and at the uniform strategies: it changes single tensors, groups of
    one size, and in small jobs two tensors at once, as long as that shortens the iteration and its
    budget of work lasts.
    """
    if prod(int(n) for n in job.count[job.group]) <= EXHAUSTIVE:
        return optimum(job)
    start = algorithm2(job, algorithm1(job), COMBINATIONS)
    timeline = Timeline(job, start)
    limit = max(WORK, WORK_A_TENSOR * len(job.size))
    best, best_time = start, timeline.time
    for strategy in (start, *_uniform(job, timeline)):
        timeline.set(strategy)
        _descend(timeline, limit)
        if timeline.time < best_time:
            best, best_time = [int(slot) for slot in timeline.strategy], timeline.time
        if timeline.events >= limit:
            break
    return best


def optimum(job: Job) -> Strategy:
    """Return a strategy of the least time, by exhaustive search: for small jobs only."""
    timeline = Timeline(job, [0] * len(job.size))
    best, best_time = [int(slot) for slot in timeline.strategy], timeline.time
    *heads, last = (range(int(count)) for count in job.count[job.group])
    tensor = len(heads)
    for slots in product(*heads):
        timeline.set([*slots, last[0]])
        slot, time = timeline.best_slot(tensor, (PLAIN, ON_GPU, MIXED))
        if time < best_time * (1 - SLACK):
            best, best_time = [*slots, slot], time
    return best


def _offloadable(job: Job, strategy: Sequence[int]) -> list[list[int]]:
    """Groups of tensors of one size and option, with a mirror, farthest from the output first."""
    groups = defaultdict(list)
    for tensor, slot in enumerate(strategy):
        group = job.group[tensor]
        if job.kind[group, slot] == ON_GPU and job.mirror[group, slot] >= 0:
            groups[-int(job.size[tensor]), slot].append(tensor)
    return [groups[key] for key in sorted(groups)]


def _every_offload(timeline: Timeline, groups: Sequence[Sequence[int]]) -> Strategy:
    start = timeline.strategy.copy()
    best, best_key = start, (timeline.time, 0)
    for counts in product(*(range(len(members) + 1) for members in groups)):
        trial = start.copy()
        for members, count in zip(groups, counts, strict=True):
            _offload(timeline.job, trial, members[:count])
        key = (timeline.set(trial), sum(counts))
        if key[0] < best_key[0] * (1 - SLACK) or (key[0] <= best_key[0] and key[1] < best_key[1]):
            best, best_key = trial, key
    return [int(slot) for slot in best]


def _offload_by_group(timeline: Timeline, groups: Sequence[Sequence[int]]) -> Strategy:
    best, time = timeline.strategy.copy(), timeline.time
    improved = True
    while improved:
        improved = False
        for members in groups:
            trial = best.copy()
            for tensor in members:
                _offload(timeline.job, trial, [tensor])
                if timeline.set(trial) < time * (1 - SLACK):
                    best, time, improved = trial.copy(), timeline.time, True
    return [int(slot) for slot in best]


def _offload(job: Job, strategy: np.ndarray, members: Sequence[int]) -> None:
    for tensor in members:
        mirror = job.mirror[job.group[tensor], strategy[tensor]]
        if mirror >= 0:
            strategy[tensor] = mirror


def _uniform(job: Job, timeline: Timeline) -> Iterator[Strategy]:
    """The best two strategies that give all tensors the same place among their candidates."""
    found = [[min(slot, int(n) - 1) for n in job.count[job.group]] for slot in range(max(job.count))]
    timed = [(timeline.set(strategy), strategy) for strategy in found[:64]]
    yield from (strategy for _, strategy in sorted(timed)[:2])


def _descend(timeline: Timeline, limit: int) -> None:
    """Change single tensors, then groups, then pairs, as long as that helps."""
    timeline.improve(max(limit - timeline.events, 0))
    while timeline.events < limit and (_change_groups(timeline, limit) or _change_pairs(timeline)):
        timeline.improve(max(limit - timeline.events, 0))


def _change_groups(timeline: Timeline, limit: int) -> bool:
    """Give all tensors of a group, or those of its half nearer to the output, the same slot."""
    job = timeline.job
    best, time = timeline.strategy.copy(), timeline.time
    before = time
    for group in range(len(job.count)):
        members = np.flatnonzero(job.group == group)
        if len(members) < 2 or timeline.events >= limit:
            continue
        for part in (members, members[len(members) // 2 :]):
            for slot in range(job.count[group]):
                trial = best.copy()
                trial[part] = slot
                if timeline.set(trial) < time * (1 - SLACK):
                    best, time = trial, timeline.time
    timeline.set(best)
    return time < before


def _change_pairs(timeline: Timeline) -> bool:
    """Change two tensors at once, in a small job; the first pair that helps is taken."""
    job, time = timeline.job, timeline.time
    if len(job.size) > PAIRS:
        return False
    start = timeline.strategy.copy()
    for first in range(len(job.size)):
        for slot in range(job.count[job.group[first]]):
            trial = start.copy()
            trial[first] = slot
            timeline.set(trial)
            for second in range(first + 1, len(job.size)):
                found, other = timeline.best_slot(second, (PLAIN, ON_GPU, MIXED))
                if other < time * (1 - SLACK):
                    timeline.change(second, found)
                    return True
    timeline.set(start)
    return False
