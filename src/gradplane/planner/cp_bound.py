"""A bound for every strategy of a job by OR-Tools' CP-SAT, which is optional.

The model lets each resource serve its steps in any order, where the timeline has one; computations
keep theirs, and a compression at the start of an option stays before the next computation. So no
strategy is quicker than the bound, and a bound that a strategy reaches proves it an optimum.

    >>> from gradplane.planner.cp_bound import bound
    >>> bound(job).seconds      # doctest: +SKIP
    0.0123
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.planner.balance import lower_bound
from gradplane.planner.costs import GPU, RESOURCES
from gradplane.planner.inputs import PlannerError
from gradplane.planner.job import Candidates

UNITS = 10**6
"""Whole units of time in the longest that a job may take: durations are rounded down to them."""


@dataclass(frozen=True)
class CpBound:
    """A time that no strategy goes below, in seconds; `proven`: it is the model's optimum."""

    seconds: float
    proven: bool


def bound(job: Candidates, effort: float = 10.0, start: Sequence[int] | None = None) -> CpBound:
    """Return the bound that CP-SAT finds on one processor, at least `balance.lower_bound`.

    effort: the limit in CP-SAT's own units, about a second each on a quick processor, so that equal
    calls give equal bounds. start: a strategy to begin with, a candidate's number for each tensor.
    Raises PlannerError where OR-Tools is not installed.
    """
    cp = _cp_model()
    model = _Model(cp, job)
    for tensor, slot in enumerate(start or ()):
        for number, chosen in enumerate(model.chosen[tensor]):
            model.cp.add_hint(chosen, number == slot)
    solver = cp.CpSolver()
    solver.parameters.max_deterministic_time = effort
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model.cp)
    found = float(solver.best_objective_bound) * model.unit
    return CpBound(max(found, lower_bound(job)), status == cp.OPTIMAL)


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise PlannerError(
            "a bound by CP-SAT needs OR-Tools: pip install gradplane[bounds]"
        ) from None
    return cp_model


class _Model:
    """The job as optional intervals. chosen: by tensor, a Boolean for each candidate."""

    def __init__(self, cp: Any, job: Candidates) -> None:
        self.cp = cp.CpModel()
        self._job = job
        longest = float(job.compute.sum()) + sum(
            max(sum(s for _, s in job.steps(t, slot)) for slot in range(self._slots(t)))
            for t in range(len(job.compute))
        )
        self.unit = longest / UNITS or 1.0
        self._end = self._time("end")
        self._on: list[list[Any]] = [[] for _ in RESOURCES]
        self.chosen: list[list[Any]] = []
        before = 0
        for tensor in range(len(job.compute)):
            before = self._tensor(tensor, before)
        for intervals in self._on:
            self.cp.add_no_overlap(intervals)
        self.cp.minimize(self._end)

    def _slots(self, tensor: int) -> int:
        return int(self._job.count[self._job.group[tensor]])

    def _time(self, name: str) -> Any:
        return self.cp.new_int_var(0, UNITS, name)

    def _whole(self, seconds: float) -> int:
        return math.floor(seconds / self.unit)

    def _tensor(self, tensor: int, before: Any) -> Any:
        """Add a tensor whose computation follows at `before`; return when the next one may."""
        ready, after = self._time(f"ready {tensor}"), self._time(f"after {tensor}")
        start, length = self._time(f"start {tensor}"), self._whole(self._job.compute[tensor])
        computing = self.cp.new_interval_var(start, length, ready, f"compute {tensor}")
        self._on[GPU].append(computing)
        self.cp.add(start >= before)
        self.cp.add(after >= ready)
        self.cp.add(self._end >= ready)
        chosen = [self.cp.new_bool_var(f"{tensor}: {n}") for n in range(self._slots(tensor))]
        self.cp.add_exactly_one(chosen)
        self.chosen.append(chosen)
        for slot, literal in enumerate(chosen):
            self._candidate(tensor, slot, literal, ready, after)
        return after

    def _candidate(self, tensor: int, slot: int, literal: Any, ready: Any, after: Any) -> None:
        at = ready
        for number, (resource, seconds) in enumerate(self._job.steps(tensor, slot)):
            name = f"{tensor}: {slot}, {number}"
            start, end = self._time(f"start {name}"), self._time(f"end {name}")
            self._on[resource].append(
                self.cp.new_optional_interval_var(start, self._whole(seconds), end, literal, name)
            )
            self.cp.add(start >= at).only_enforce_if(literal)
            if number == 0 and resource == GPU:
                self.cp.add(after >= end).only_enforce_if(literal)
            at = end
        self.cp.add(self._end >= at).only_enforce_if(literal)
