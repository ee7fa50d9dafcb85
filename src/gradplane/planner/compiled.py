"""The timeline in machine code, with a checkpoint before each tensor's computation.

A resource completes steps in ascending order of time, so the waiting steps form four queues, one
for each resource that they come from, and the next computation; the next step is the earliest of
these five heads. A queue only grows, so a checkpoint is the positions of its head and tail. To try
another option of tensor j, the timeline continues from j's checkpoint, on copies of the queues.

A trial ends early when it cannot beat the time to beat: no resource ends before the sum of its
steps and of its idle time so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit

from gradplane.planner.cost_kernels import Floats, Ints
from gradplane.planner.costs import GPU, INTRA
from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Job
from gradplane.planner.timeline import check

SLACK = 1e-9  # a time is better if it is so much smaller: sums in another order differ by less


class Timeline:
    """The timeline of one strategy, which changes tensor by tensor.

    strategy: the slots; time: F(S). `events` counts steps served, a measure of work that does not
    depend on the machine.
    """

    def __init__(self, job: Job, strategy: Sequence[int] | Ints) -> None:
        check(job, strategy)
        self.job = job
        tensors = len(job.size)
        self.strategy = np.array(strategy, np.int64)
        self._length = _lengths(job.first, job.count, job.resource)
        longest = int(sum(self._length.max(axis=1)[job.group])) + 1
        self._base = _arrays(longest)
        self._scratch = _arrays(longest)
        self._checkpoints = np.zeros((tensors, 19))
        self._totals = np.zeros(4)
        self._events = np.zeros(1, np.int64)
        self.assign(strategy)

    def assign(self, strategy: Sequence[int] | Ints) -> float:
        """Take a whole strategy; return its time."""
        self.strategy[:] = strategy
        self._totals[:] = _totals(self.job.compute, self._first(), *self._steps())
        self.time = self._rerun(0)
        return self.time

    def change(self, tensor: int, slot: int) -> float:
        """Give a tensor another option; return the time."""
        self._shift(tensor, slot)
        self.strategy[tensor] = slot
        self.time = self._rerun(tensor)
        return self.time

    def best_slot(self, tensor: int, kinds: Sequence[int]) -> tuple[int, float]:
        """Return the best slot of a tensor among these kinds, and its time.

        Ties keep the present one.
        """
        return self._best(tensor, kinds, self.time)

    def descend(self) -> None:
        """Give each tensor its best option, one after another, until no change of one helps."""
        before = math.inf
        while self.time < before:
            before = self.time
            for tensor in range(len(self.strategy)):
                slot, time = self.best_slot(tensor, (PLAIN, ON_GPU, MIXED))
                if time < self.time:
                    self.change(tensor, slot)

    def next_best(self, tensor: int) -> tuple[int, float]:
        """Return the best other slot of a tensor and its time, with all others as they are.

        Infinite where there is none.
        """
        return self._best(tensor, (PLAIN, ON_GPU, MIXED), math.inf)

    def _best(self, tensor: int, kinds: Sequence[int], below: float) -> tuple[int, float]:
        mask = 0
        for kind in kinds:
            mask |= 1 << kind
        slot, time = _best_slot(
            tensor, mask, below, self.strategy, self.job.group, self.job.count, self.job.kind,
            self.job.first, self.job.compute, *self._steps(), self._totals, self._base,
            self._scratch, self._checkpoints, self._events,
        )  # fmt: skip
        return int(slot), float(time)

    def improve(self, budget: int) -> bool:
        """Change single tensors as long as that helps, from the last to the first, round by round.

        Ends when `events` has grown by the budget. Returns whether anything changed.
        """
        time = _improve(
            int(self._events[0]) + budget, self.time, self.strategy, self.job.group,
            self.job.count, self.job.kind, self.job.first, self.job.compute, *self._steps(),
            self._totals, self._base, self._scratch, self._checkpoints, self._events,
        )  # fmt: skip
        changed = bool(time < self.time)
        self.time = float(time)
        return changed

    def before_bubble(self) -> set[int]:
        """Return the tensors without compression that are communicated before some bubble."""
        begun, ended = np.full(len(self.job.size), np.inf), np.full(len(self.job.size), -1.0)
        _spans(self.job.compute, self._first(), *self._steps(), begun, ended, self._scratch)
        order = np.argsort(begun, kind="stable")
        gaps = np.flatnonzero(begun[order][1:] > np.maximum.accumulate(ended[order])[:-1])
        real = gaps[np.isfinite(begun[order][gaps + 1])]
        if not real.size:
            return set()
        before = order[: real[-1] + 1]
        plain = self.job.kind[self.job.group[before], self.strategy[before]] == PLAIN
        return set(before[plain].tolist())

    @property
    def events(self) -> int:
        """The number of steps served so far, in all trials."""
        return int(self._events[0])

    def _steps(self) -> tuple[Ints, Floats]:
        return self.job.resource, self.job.seconds

    def _first(self) -> Ints:
        found: Ints = self.job.first[self.job.group, self.strategy]
        return found

    def _shift(self, tensor: int, slot: int) -> None:
        group = self.job.group[tensor]
        old, new = self.job.first[group, self.strategy[tensor]], self.job.first[group, slot]
        _shift(self._totals, old, new, *self._steps())

    def _rerun(self, tensor: int) -> float:
        return float(
            _run(
                tensor,
                -1,
                np.inf,
                self.strategy,
                self.job.group,
                self.job.first,
                self.job.compute,
                *self._steps(),
                self._totals,
                self._base,
                self._base,
                self._checkpoints,
                True,
                self._events,
            )  # fmt: skip
        )


def evaluate(job: Job, strategy: Sequence[int]) -> float:
    """Return F(S) of one strategy."""
    return Timeline(job, strategy).time


Queues = tuple[Floats, Ints, Ints]  # [source, entry]: ready time, tensor, step


def _arrays(entries: int) -> Queues:
    shape = (4, entries)
    return np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64)


@njit(cache=True, nogil=True)
def _lengths(first: Ints, count: Ints, resource: Ints) -> Ints:
    lengths = np.zeros(first.shape, np.int64)
    for group in range(first.shape[0]):
        for slot in range(count[group]):
            at = first[group, slot]
            while resource[at] >= 0:
                at += 1
            lengths[group, slot] = at - first[group, slot] + 1
    return lengths


@njit(cache=True, nogil=True)
def _totals(compute: Floats, first: Ints, resource: Ints, seconds: Floats) -> Floats:
    totals = np.zeros(4)
    totals[GPU] = compute.sum()
    for at in first:
        while resource[at] >= 0:
            totals[resource[at]] += seconds[at]
            at += 1
    return totals


@njit(cache=True, nogil=True)
def _shift(totals: Floats, old: int, new: int, resource: Ints, seconds: Floats) -> None:
    while resource[old] >= 0:
        totals[resource[old]] -= seconds[old]
        old += 1
    while resource[new] >= 0:
        totals[resource[new]] += seconds[new]
        new += 1


@njit(cache=True, nogil=True)
def _run(  # type: ignore[no-untyped-def]
    begin, slot, beat, strategy, group, first, compute, resource, seconds, totals, source, queues,
    checkpoints, save, events,
):  # fmt: skip
    """Serve everything from tensor `begin` on; infinity once it cannot be below `beat`.

    slot: of tensor `begin`, -1 for the strategy's. A checkpoint: head, tail, free, idle by
    resource, the next computation, the end so far.
    """
    ready, tensors, steps = queues
    head, tail = np.zeros(4, np.int64), np.zeros(4, np.int64)
    free, idle = np.zeros(4), np.zeros(4)
    next_compute, end = 0.0, 0.0
    if begin > 0:
        for r in range(4):
            head[r], tail[r] = int(checkpoints[begin, r]), int(checkpoints[begin, 4 + r])
            free[r], idle[r] = checkpoints[begin, 8 + r], checkpoints[begin, 12 + r]
            if not save:
                for at in range(head[r], tail[r]):
                    ready[r, at] = source[0][r, at]
                    tensors[r, at] = source[1][r, at]
                    steps[r, at] = source[2][r, at]
        next_compute, end = checkpoints[begin, 16], checkpoints[begin, 17]
    at = begin
    count = compute.size
    served = 0
    while True:
        time, tensor, which = np.inf, count, -1
        if at < count:
            time, tensor, which = next_compute, at, 4
        for r in range(4):
            if head[r] < tail[r]:
                t = ready[r, head[r]]
                if t < time or (t == time and tensors[r, head[r]] < tensor):
                    time, tensor, which = t, tensors[r, head[r]], r
        if which < 0:
            break
        served += 1
        if which == 4:
            if save:
                for r in range(4):
                    checkpoints[at, r], checkpoints[at, 4 + r] = head[r], tail[r]
                    checkpoints[at, 8 + r], checkpoints[at, 12 + r] = free[r], idle[r]
                checkpoints[at, 16], checkpoints[at, 17] = next_compute, end
            r = 0
            step = first[group[at], slot if at == begin and slot >= 0 else strategy[at]]
            duration = compute[at]
            start = max(time, free[0])
            finish = start + duration
            if resource[step] == 0:
                finish += seconds[step]
                step += 1
            at += 1
            next_compute = finish
        else:
            step = steps[which, head[which]]
            head[which] += 1
            r = resource[step]
            start = max(time, free[r])
            finish = start + seconds[step]
            step += 1
        idle[r] += start - free[r]
        free[r] = finish
        if totals[r] + idle[r] >= beat or finish >= beat:
            events[0] += served
            return np.inf
        if resource[step] >= 0:
            ready[r, tail[r]], tensors[r, tail[r]], steps[r, tail[r]] = finish, tensor, step
            tail[r] += 1
        elif finish > end:
            end = finish
    events[0] += served
    return end


@njit(cache=True, nogil=True)
def _best_slot(  # type: ignore[no-untyped-def]
    tensor, mask, time, strategy, group, count, kind, first, compute, resource, seconds, totals,
    base, scratch, checkpoints, events,
):  # fmt: skip
    """Return the best slot of a tensor, among the kinds in `mask`, and its time."""
    g, present = group[tensor], strategy[tensor]
    best = present
    for slot in range(count[g]):
        if slot == present or not (mask >> kind[g, slot]) & 1:
            continue
        _shift(totals, first[g, present], first[g, slot], resource, seconds)
        found = _run(
            tensor, slot, time * (1 - SLACK), strategy, group, first, compute, resource, seconds,
            totals, base, scratch, checkpoints, False, events,
        )  # fmt: skip
        _shift(totals, first[g, slot], first[g, present], resource, seconds)
        if found < time * (1 - SLACK):
            best, time = slot, found
    return best, time


@njit(cache=True, nogil=True)
def _improve(  # type: ignore[no-untyped-def]
    limit, time, strategy, group, count, kind, first, compute, resource, seconds, totals, base,
    scratch, checkpoints, events,
):  # fmt: skip
    """Change single tensors as long as that helps; return the final time."""
    unchanged, tensor = 0, compute.size
    while unchanged < compute.size and events[0] < limit:
        tensor = tensor - 1 if tensor > 0 else compute.size - 1
        slot, found = _best_slot(
            tensor, 7, time, strategy, group, count, kind, first, compute, resource, seconds,
            totals, base, scratch, checkpoints, events,
        )  # fmt: skip
        unchanged += 1
        if slot != strategy[tensor]:
            g = group[tensor]
            _shift(totals, first[g, strategy[tensor]], first[g, slot], resource, seconds)
            strategy[tensor] = slot
            time = _run(
                tensor, -1, np.inf, strategy, group, first, compute, resource, seconds, totals,
                base, base, checkpoints, True, events,
            )  # fmt: skip
            unchanged = 0
    return time


@njit(cache=True, nogil=True)
def _spans(compute, first, resource, seconds, begun, ended, queues):  # type: ignore[no-untyped-def]
    """Write when each tensor's first communication begins and its last one ends."""
    ready, tensors, steps = queues
    head, tail, free = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4)
    at, next_compute = 0, 0.0
    while True:
        time, tensor, which = np.inf, compute.size, -1
        if at < compute.size:
            time, tensor, which = next_compute, at, 4
        for r in range(4):
            if head[r] < tail[r]:
                t = ready[r, head[r]]
                if t < time or (t == time and tensors[r, head[r]] < tensor):
                    time, tensor, which = t, tensors[r, head[r]], r
        if which < 0:
            break
        if which == 4:
            r, step = 0, first[at]
            start = max(time, free[0])
            finish = start + compute[at]
            if resource[step] == 0:
                finish += seconds[step]
                step += 1
            at += 1
            next_compute = finish
        else:
            step = steps[which, head[which]]
            head[which] += 1
            r = resource[step]
            start = max(time, free[r])
            finish = start + seconds[step]
            step += 1
        free[r] = finish
        if r >= INTRA:
            begun[tensor] = min(begun[tensor], start)
            ended[tensor] = max(ended[tensor], finish)
        if resource[step] >= 0:
            ready[r, tail[r]], tensors[r, tail[r]], steps[r, tail[r]] = finish, tensor, step
            tail[r] += 1
