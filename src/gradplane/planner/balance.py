"""Balancing the load of the four resources, with no regard to when each is busy.

No strategy ends before its busiest resource has done its work. That gives starting points for a
search, and a bound for every strategy.
"""

from __future__ import annotations

import numpy as np

from gradplane._kernels import njit
from gradplane.planner.cost_kernels import Floats, Ints
from gradplane.planner.costs import GPU
from gradplane.planner.job import Candidates

ROUNDS = 20


@njit(cache=True, nogil=True, general=True)
def balanced(loads: Floats, group: Ints, compute: float, power: float) -> Ints:
    """Return the strategy that a descent on the sum of the loads' powers finds.

    loads: of the job; compute: the computation time of all tensors.
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


def lower_bound(job: Candidates, rounds: int = 300) -> float:
    """Return a time that no strategy of the job's candidates goes below.

    For prices that add up to 1, the load of the busiest resource is at least the priced sum of all
    loads, hence at least that sum with each tensor's cheapest candidate. The prices follow the
    loads (multiplicative weights).
    """
    return max(_priced(job, rounds)[0], float(job.compute.sum()))


def prices(job: Candidates, rounds: int = 100) -> Floats:
    """Return a price of each resource: those of the best bound in `lower_bound`."""
    return _priced(job, rounds)[1]


def _priced(job: Candidates, rounds: int) -> tuple[float, Floats]:
    members = np.bincount(job.group, minlength=len(job.count))
    bound, price = _price(job.demands, job.count, members, float(job.compute.sum()), rounds)
    return float(bound), price


@njit(cache=True, nogil=True, general=True)
def _price(
    demands: Floats, count: Ints, members: Ints, compute: float, rounds: int
) -> tuple[float, Floats]:
    """Return the best bound and its prices."""
    price, best, found = np.full(4, 0.25), 0.0, np.full(4, 0.25)
    for step in range(rounds):
        total = np.zeros(4)
        total[GPU] = compute
        for group in range(count.size):
            cheapest, least = 0, np.inf
            for slot in range(count[group]):
                cost = 0.0
                for r in range(4):
                    cost += price[r] * demands[group, slot, r]
                if cost < least:
                    cheapest, least = slot, cost
            total += members[group] * demands[group, cheapest, :4]
        bound = (total * price).sum()
        if bound > best:
            best, found = bound, price.copy()
        if total.max() <= 0:
            break
        price = price * np.exp(total / total.max() / np.sqrt(step + 1.0))
        price /= price.sum()
    return best, found
