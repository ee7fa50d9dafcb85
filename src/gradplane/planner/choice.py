"""The choice of a strategy for a model's tensors: the search, then options that it did not have.

The search is among the candidates of a job. Its result gives each resource a price, and the options
of the whole tree that are cheapest at about these prices become candidates, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradplane.planner import search
from gradplane.planner.balance import prices
from gradplane.planner.compiled import Timeline
from gradplane.planner.cost_kernels import Floats
from gradplane.planner.job import Builder

WORK = 1_500_000  # steps served that the changes of single tensors may take in a small job
WORK_A_TENSOR = 5_000  # ... and for each tensor of a large one
FACTORS = (0.25, 4.0)  # by which one price differs from the resources' own
LEAST = 1e-3  # of the highest price: no resource is free


def choose(builder: Builder, compute: Sequence[float], size: Sequence[int]) -> Timeline:
    """Return the timeline of the strategy for tensors with these computation times and sizes.

    It is never slower than that of the search.
    """
    job = builder.job(compute, size)
    strategy = search.search(job)
    wider = builder.job(compute, size, prices=_around(prices(job)))
    timeline = Timeline(wider, strategy)  # the first job's candidates keep their slots
    timeline.improve(max(WORK, WORK_A_TENSOR * len(size)))
    return timeline


def _around(price: Floats) -> Floats:
    """Return the prices, and those in which one resource's is another one: [price, resource]."""
    found = np.tile(price, (1 + 4 * len(FACTORS), 1))
    changed = ((resource, factor) for resource in range(4) for factor in FACTORS)
    for row, (resource, factor) in zip(found[1:], changed, strict=True):
        row[resource] *= factor
    found += LEAST * price.max()
    return found
