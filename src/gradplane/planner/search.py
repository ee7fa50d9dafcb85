"""Searches for a strategy: Espresso's Algorithms 1 and 2, ours, and the optimum of small jobs.

A strategy is the slot of each tensor (see `job`). Times are F(S) of `timeline`.

`choose` makes the choice for a model's tensors: the search, then options that it did not have. The
search is among the candidates of a job. Its result gives each resource a price, and the options
of the whole tree that are cheapest at about these prices become candidates, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from math import inf, prod

import numpy as np

from gradplane.planner.balance import balanced, prices
from gradplane.planner.compiled import SLACK, Timeline
from gradplane.planner.cost_kernels import Floats, Ints
from gradplane.planner.job import ON_GPU, PLAIN, Builder, Candidates

Strategy = list[int]

COMBINATIONS = 1000  # of offloads that search() lets Algorithm 2 go through
EXHAUSTIVE = 3000  # strategies up to which search() evaluates them all
PAIRS = 24  # tensors up to which search() changes two at once
LARGE = 1000  # tensors above which search() ends Algorithm 1 after its work
STARTS = 3  # of the priced strategies
WORK = 2_000_000  # steps served that search() may spend on its local search of a small job
WORK_A_TENSOR = 8_000  # ... and for each tensor of a large one
_POWERS = (2.0, 4.0, 8.0, 16.0, 32.0)
_PRICES = np.array(
    sorted({tuple(np.divide(p, max(p))) for p in product((0.01, 0.1, 1.0), repeat=4)})
)


def uncompressed(job: Candidates) -> Strategy:
    """Return the strategy without compression: each tensor's quickest such option by itself.

    A tensor whose options all compress takes the quickest of these."""
    slots = []
    for group, count in enumerate(job.count):
        tensor = int(np.flatnonzero(job.group == group)[0])
        plain = [s for s in range(count) if job.kind[group, s] == PLAIN] or range(count)
        slots.append(min(plain, key=lambda s: sum(d for _, d in job.steps(tensor, s))))
    return [slots[group] for group in job.group]


def algorithm1(
    job: Candidates, work: float = inf, kinds: Sequence[int] = (PLAIN, ON_GPU)
) -> Strategy:
    """Return the strategy of Algorithm 1: compression with GPUs, or with options of other `kinds`.

    Tensors are visited by descending size, among equal sizes those nearer to the output layer (the
    last in backward order) first. One without compression that is communicated before a bubble is
    never visited again. Ties keep the earlier candidate. No tensor is visited after `work` steps of
    the timeline, where given.
    """
    timeline = Timeline(job, uncompressed(job))
    removed = timeline.before_bubble()
    for tensor in sorted(range(len(job.size)), key=lambda t: (-job.size[t], -t)):
        if timeline.events > work:
            break
        if tensor in removed:
            continue
        slot, _ = timeline.best_slot(tensor, kinds)
        if slot != timeline.strategy[tensor]:
            timeline.change(tensor, slot)
            removed |= timeline.before_bubble()
    return [int(slot) for slot in timeline.strategy]


def algorithm2(
    job: Candidates, strategy: Sequence[int], combinations: int | None = None
) -> Strategy:
    """Return the strategy of Algorithm 2: which compressions go to the CPU.

    Of each group of tensors of one size and option that the GPU compresses, the u farthest from the
    output layer are offloaded, with all their compression and decompression. Every combination of
    the groups' u counts; ties go to the fewest offloads. Above `combinations`, where given, the
    groups are gone through one after another instead, until none brings anything.
    """
    timeline = Timeline(job, strategy)
    groups = offloadable(job, strategy)
    if combinations is None or prod(len(members) + 1 for members in groups) <= combinations:
        return _every_offload(timeline, groups)
    return _offload_by_group(timeline, groups)


def search(job: Candidates) -> Strategy:
    """Return the strategy of our search, never slower than that of Algorithms 1 and 2.

    A job with few strategies is searched exhaustively. For another one a local search starts at the
    result of the two algorithms and at strategies that balance the load of the
    resources: it changes single tensors, groups of
    one size, and in small jobs two tensors at once, as long as that shortens the iteration and its
    budget of work lasts.
    """
    if prod(int(n) for n in job.count[job.group]) <= EXHAUSTIVE:
        return optimum(job)
    large = len(job.size) > LARGE
    limit = max(WORK, WORK_A_TENSOR * len(job.size))
    first = algorithm1(job, limit / 2 if large else inf)
    start = first if large else algorithm2(job, first, COMBINATIONS)
    timeline = Timeline(job, start)
    starts = [start, *_starts(job, timeline)]
    descents = [_descended(timeline, each, limit // (2 * len(starts))) for each in starts]
    _, best = min(descents)
    return _descended(timeline, best, limit // 2)[1]


def optimum(job: Candidates) -> Strategy:
    """Return a strategy of the least time, by exhaustive search: for small jobs only."""
    timeline = Timeline(job, [0] * len(job.size))
    best, best_time = [int(slot) for slot in timeline.strategy], timeline.time
    *heads, last = (range(int(count)) for count in job.count[job.group])
    tensor = len(heads)
    for slots in product(*heads):
        timeline.assign([*slots, last[0]])
        slot, time = timeline.best_slot(tensor)
        if time < best_time * (1 - SLACK):
            best, best_time = [*slots, slot], time
    return best


def offloadable(job: Candidates, strategy: Sequence[int]) -> list[list[int]]:
    """Group tensors of one size and option that have a mirror, farthest from the output first."""
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
        key = (timeline.assign(trial), sum(counts))
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
                if timeline.assign(trial) < time * (1 - SLACK):
                    best, time, improved = trial.copy(), timeline.time, True
    return [int(slot) for slot in best]


def _offload(job: Candidates, strategy: Ints, members: Sequence[int]) -> None:
    for tensor in members:
        mirror = job.mirror[job.group[tensor], strategy[tensor]]
        if mirror >= 0:
            strategy[tensor] = mirror


def _starts(job: Candidates, timeline: Timeline) -> list[Strategy]:
    """Return the best few strategies that balance the load of the resources, or that price it."""
    loads = job.loads
    compute = float(job.compute.sum())
    found = [balanced(loads, job.group, compute, power) for power in _POWERS]
    if len(job.size) <= LARGE:
        found += [np.argmin(loads @ price, axis=1)[job.group] for price in _PRICES]
    found = list(np.unique(found, axis=0))
    timed = sorted((timeline.assign(strategy), n) for n, strategy in enumerate(found))
    return [found[n].tolist() for _, n in timed[:STARTS]]


def _descended(timeline: Timeline, start: Strategy, work: int) -> tuple[float, Strategy]:
    """Change single tensors, then groups, then pairs, as long as that helps and the work lasts."""
    timeline.assign(start)
    limit = timeline.events + work
    timeline.improve(work)
    while timeline.events < limit and (_change_groups(timeline, limit) or _change_pairs(timeline)):
        timeline.improve(max(limit - timeline.events, 0))
    return timeline.time, [int(slot) for slot in timeline.strategy]


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
                if timeline.assign(trial) < time * (1 - SLACK):
                    best, time = trial, timeline.time
    timeline.assign(best)
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
            timeline.assign(trial)
            for second in range(first + 1, len(job.size)):
                found, other = timeline.best_slot(second)
                if other < time * (1 - SLACK):
                    timeline.change(second, found)
                    return True
    timeline.assign(start)
    return False


CHOICE_WORK = 1_500_000  # steps served that the changes of single tensors may take in a small job
CHOICE_WORK_A_TENSOR = 5_000  # ... and for each tensor of a large one
FACTORS = (0.25, 4.0)  # by which one price differs from the resources' own
LEAST = 1e-3  # of the highest price: no resource is free


def choose(builder: Builder, compute: Sequence[float], size: Sequence[int]) -> Timeline:
    """Return the timeline of the strategy for tensors with these computation times and sizes.

    It is never slower than that of the search.
    """
    job = builder.job(compute, size)
    strategy = search(job)
    wider = builder.job(compute, size, prices=_around(prices(job)))
    timeline = Timeline(wider, strategy)  # the first job's candidates keep their slots
    timeline.improve(max(CHOICE_WORK, CHOICE_WORK_A_TENSOR * len(size)))
    return timeline


def _around(price: Floats) -> Floats:
    """Return the prices, and those in which one resource's is another one: [price, resource]."""
    found = np.tile(price, (1 + 4 * len(FACTORS), 1))
    changed = ((resource, factor) for resource in range(4) for factor in FACTORS)
    for row, (resource, factor) in zip(found[1:], changed, strict=True):
        row[resource] *= factor
    found += LEAST * price.max()
    return found
