"""Balancing the load of the four resources, with no regard to when each is busy.

No strategy ends before its busiest resource has done its work. That gives starting points for a
search, and a bound for every strategy.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gradplane.planner.cost_kernels import Floats, Ints
from gradplane.planner.costs import GPU
from gradplane.planner.job import END, Job

ROUNDS = 20


def slot_loads(job: Job) -> Floats:
    """Return [group, slot, resource]: each candidate's seconds; infinity if there is none."""
    return _slot_loads(job.first, job.count, job.resource, job.seconds)


@njit(cache=True, nogil=True)
def _slot_loads(first: Ints, count: Ints, resource: Ints, seconds: Floats) -> Floats:
    loads = np.full((first.shape[0], first.shape[1], 4), np.inf)
    for group in range(first.shape[0]):
        for slot in range(count[group]):
            loads[group, slot] = 0.0
            at = first[group, slot]
            while resource[at] != END:
                loads[group, slot, resource[at]] += seconds[at]
                at += 1
    return loads


@njit(cache=True, nogil=True)
def balanced(loads: Floats, group: Ints, compute: float, power: float) -> Ints:
    """Return the strategy that a descent on the sum of the loads' powers finds.

    loads: of slot_loads; compute: the computation time of all tensors.
    """
    strategy = np.zeros(group.size, np.int64)
    total = np.zeros(4)
    total[GPU] = compute
    for tensor in range(group.size):
        total += loads[group[tensor], 0]
    for _ in range(ROUNDS):
        changed = False
        for tensor in range(group.size - 1, -1, -1):
            g = group[tensor]
            total -= loads[g, strategy[tensor]]
            scale = total.max()
            if scale <= 0:
                scale = 1.0
            best, best_cost = strategy[tensor], np.inf
            for slot in range(loads.shape[1]):
                if loads[g, slot, 0] == np.inf:
                    continue
                cost = 0.0
                for r in range(4):
                    cost += max((total[r] + loads[g, slot, r]) / scale, 0.0) ** power
                if cost < best_cost * (1 - 1e-12):
                    best, best_cost = slot, cost
            changed = changed or best != strategy[tensor]
            strategy[tensor] = best
            total += loads[g, best]
        if not changed:
            break
    return strategy


def lower_bound(job: Job, rounds: int = 300) -> float:
    """Return a time that no strategy of the job's candidates goes below.

    For prices that add up to 1, the load of the busiest resource is at least the priced sum of all
    loads, hence at least that sum with each tensor's cheapest candidate. The prices follow the
    loads (multiplicative weights).
    """
    loads = slot_loads(job)
    compute = np.zeros(4)
    compute[GPU] = job.compute.sum()
    members = np.bincount(job.group, minlength=len(loads))
    price, best = np.full(4, 0.25), float(compute[GPU])
    finite = np.where(np.isinf(loads), 1e30, loads)
    for step in range(rounds):
        cheapest = (finite @ price).argmin(axis=1)
        total = compute + members @ finite[np.arange(len(loads)), cheapest]
        best = max(best, float(total @ price))
        if total.max() <= 0:
            break
        price = price * np.exp(total / total.max() / np.sqrt(step + 1.0))
        price /= price.sum()
    return best
