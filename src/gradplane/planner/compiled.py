"""The timeline in machine code, with a checkpoint before each tensor's computation.

A resource completes steps in ascending order of time, so the waiting steps form four queues, one
for each resource that they come from, and the next computation; the next step is the earliest of
these five heads. A queue only grows, so a checkpoint is the positions of its head and tail. To try
another option of tensor j, the timeline continues from j's checkpoint, on copies of the queues.

Of thousands of options few are tried to the end. No resource ends before the sum of its steps and
of its idle time so far, and what follows a computation takes at least so long (`_bound`): an option
with which one of these is not below the time to beat is not tried, and a trial ends once it is so.
A trial also ends at a checkpoint where all is as with the present option: the rest is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradplane._kernels import njit
from gradplane.planner.cost_kernels import Floats, Ints
from gradplane.planner.costs import GPU, INTRA
from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Candidates
from gradplane.planner.timeline import check

SLACK = 1e-9  # a time is better if it is so much smaller: sums in another order differ by less
ALL = (PLAIN, ON_GPU, MIXED)
NEXT = 4  # the head that is the next computation
SKIPPED = 4  # options that are not tried take as long as one step served


class _Options(NamedTuple):
    """The job: see `Candidates`."""

    group: Ints
    counts: Ints
    kind: Ints
    first: Ints
    compute: Floats
    resource: Ints
    seconds: Floats
    demands: Floats


class _Queues(NamedTuple):
    """[source, entry]: ready time, tensor, step. Of each source: head, tail, and those of heads."""

    ready: Floats
    tensor: Ints
    step: Ints


class _State(NamedTuple):
    """The present strategy, the sums of its steps by resource, its queues and checkpoints.

    A checkpoint: heads, tails, free, idle by resource, the next computation, the end so far.
    scratch: queues of a trial. head, tail, free, idle, times: of a timeline on its way. events: the
    steps served. others: totals without the tensor that is tried.
    later: from the beginning of each computation on at least so long (see `_bound`).
    """

    strategy: Ints
    totals: Floats
    others: Floats
    later: Floats
    base: _Queues
    scratch: _Queues
    checkpoints: Floats
    head: Ints
    tail: Ints
    free: Floats
    idle: Floats
    times: Floats
    events: Ints


class Timeline:
    """The timeline of one strategy, which changes tensor by tensor.

    time: F(S). `events` counts steps served, a measure of work that does not depend on the machine.
    """

    def __init__(self, job: Candidates, strategy: Sequence[int] | Ints) -> None:
        check(job, strategy)
        self.job = job
        tensors = len(job.size)
        self._options = _Options(
            job.group, job.count, job.kind, job.first, job.compute, job.resource, job.seconds,
            job.demands,
        )  # fmt: skip
        longest = tensors * job.longest + 1
        self._state = _State(
            np.array(strategy, np.int64), np.zeros(4), np.zeros(4),
            np.zeros(tensors + 1), _queues(longest), _queues(longest),
            np.zeros((tensors, 18)), np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4),
            np.zeros(4), np.zeros(5), np.zeros(1, np.int64),
        )  # fmt: skip
        self.assign(strategy)

    @property
    def strategy(self) -> Ints:
        """The slot of each tensor."""
        return self._state.strategy

    def assign(self, strategy: Sequence[int] | Ints) -> float:
        """Take a whole strategy; return its time."""
        self._state.strategy[:] = strategy
        self.time = float(_assign(self._options, self._state))
        return self.time

    def change(self, tensor: int, slot: int) -> float:
        """Give a tensor another option; return the time."""
        self.time = float(_change(tensor, slot, self._options, self._state))
        return self.time

    def best_slot(self, tensor: int, kinds: Sequence[int] = ALL) -> tuple[int, float]:
        """Return the best slot of a tensor among these kinds, and its time.

        Ties keep the present one.
        """
        slot, time = _best_slot(
            tensor, _mask(kinds), self.time, self.time, self._options, self._state
        )
        return int(slot), float(time)

    def next_best(self, tensor: int) -> tuple[int, float]:
        """Return the best other slot of a tensor and its time, with all others as they are.

        Infinite where there is none.
        """
        slot, time = _best_slot(tensor, _mask(ALL), np.inf, self.time, self._options, self._state)
        return int(slot), float(time)

    def improve(self, budget: float = np.inf) -> bool:
        """Change single tensors as long as that helps, from the last to the first, round by round.

        Ends when `events` has grown by the budget. Returns whether anything changed.
        """
        limit = min(self.events + budget, np.iinfo(np.int64).max)
        time = float(_improve(int(limit), self.time, self._options, self._state))
        changed, self.time = time < self.time, time
        return changed

    def before_bubble(self) -> set[int]:
        """Return the tensors without compression that are communicated before some bubble."""
        begun, ended = np.full(len(self.job.size), np.inf), np.full(len(self.job.size), -1.0)
        _spans(self._options, self._state, begun, ended)
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
        return int(self._state.events[0])


def evaluate(job: Candidates, strategy: Sequence[int] | Ints) -> float:
    """Return F(S) of one strategy."""
    return Timeline(job, strategy).time


def _mask(kinds: Sequence[int]) -> int:
    return sum(1 << kind for kind in kinds)


def _queues(entries: int) -> _Queues:
    shape = (4, entries)
    return _Queues(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64))


@njit(cache=True, nogil=True, general=True)
def _assign(options, state):  # type: ignore[no-untyped-def]
    """Run the strategy from the start, with checkpoints; return its time."""
    state.totals[:] = 0.0
    state.totals[GPU] = options.compute.sum()
    for tensor in range(options.compute.size):
        for r in range(4):
            state.totals[r] += options.demands[options.group[tensor], state.strategy[tensor], r]
    _bound(options, state)
    return _run(0, -1, np.inf, np.inf, True, options, state)


@njit(cache=True, nogil=True, general=True)
def _change(tensor, slot, options, state):  # type: ignore[no-untyped-def]
    """Change the slot of a tensor; return the time."""
    loads = options.demands[options.group[tensor]]
    for r in range(4):
        state.totals[r] += loads[slot, r] - loads[state.strategy[tensor], r]
    state.strategy[tensor] = slot
    _bound(options, state)
    return _run(tensor, -1, np.inf, np.inf, True, options, state)


@njit(cache=True, nogil=True, general=True)
def _bound(options, state):  # type: ignore[no-untyped-def]
    """Write what each computation and all after it take at least, with the present strategy.

    That is the longest of: a tensor's computation and those before it, then its own steps; on each
    resource, the same up to the first step of a tensor on it, then all those of the tensors from
    there on, then the shortest end of a tensor after its last step on it.
    """
    resource, seconds, later = options.resource, options.seconds, state.later
    first, last = np.empty(4), np.empty(4)  # of one tensor: before its steps on a resource, after
    begin, after, load = np.full(4, np.inf), np.full(4, np.inf), np.zeros(4)
    later[options.compute.size] = 0.0
    for tensor in range(options.compute.size - 1, -1, -1):
        step = options.first[options.group[tensor], state.strategy[tensor]]
        computing = options.compute[tensor]
        if resource[step] == GPU:
            computing += seconds[step]
            step += 1
        first[:], last[:] = np.inf, np.inf
        path = 0.0
        while resource[step] >= 0:
            r = resource[step]
            first[r] = min(first[r], path)
            path += seconds[step]
            load[r] += seconds[step]
            last[r] = path
            step += 1
        least = max(later[tensor + 1], path)
        for r in range(1, 4):
            begin[r] = min(first[r], begin[r]) + computing
            after[r] = min(after[r], path - last[r]) if last[r] < np.inf else after[r]
            if load[r] > 0:
                least = max(least, begin[r] - computing + load[r] + after[r])
        later[tensor] = computing + least


@njit(cache=True, nogil=True, general=True)
def _run(begin, slot, beat, present, save, options, state):  # type: ignore[no-untyped-def]
    """Serve everything from tensor `begin` on; infinity once it cannot be below `beat`.

    slot: of tensor `begin`, -1 for the strategy's. present: the time of the present strategy. save:
    whether this is the present strategy, whose checkpoints are written.
    """
    ready, tensors, steps = state.base if save else state.scratch
    head, tail, free, idle, times = state.head, state.tail, state.free, state.idle, state.times
    totals, checkpoints = state.totals, state.checkpoints
    resource, seconds, count = options.resource, options.seconds, options.compute.size
    end = 0.0
    times[NEXT] = 0.0
    for r in range(4):
        head[r], tail[r], free[r], idle[r], times[r] = 0, 0, 0.0, 0.0, np.inf
    if begin > 0:
        times[NEXT], end = checkpoints[begin, 16], checkpoints[begin, 17]
        for r in range(4):
            head[r], tail[r] = int(checkpoints[begin, r]), int(checkpoints[begin, 4 + r])
            free[r], idle[r] = checkpoints[begin, 8 + r], checkpoints[begin, 12 + r]
            if head[r] < tail[r]:
                times[r] = state.base.ready[r, head[r]]
            if not save:
                for entry in range(head[r], tail[r]):
                    ready[r, entry] = state.base.ready[r, entry]
                    tensors[r, entry] = state.base.tensor[r, entry]
                    steps[r, entry] = state.base.step[r, entry]
    at, served = begin, 0
    while True:
        which, time = NEXT, times[NEXT]
        for r in range(4):
            t = times[r]
            if t < time or (
                t == time
                and t < np.inf
                and (which == NEXT or tensors[r, head[r]] < tensors[which, head[which]])
            ):
                which, time = r, t
        if time == np.inf:
            break
        served += 1
        if which == NEXT:
            if save:
                for r in range(4):
                    checkpoints[at, r], checkpoints[at, 4 + r] = head[r], tail[r]
                    checkpoints[at, 8 + r], checkpoints[at, 12 + r] = free[r], idle[r]
                checkpoints[at, 16], checkpoints[at, 17] = time, end
            elif (
                at > begin
                and time == checkpoints[at, 16]
                and checkpoints[at, 17] < present
                and _same(at, time, state)
            ):
                state.events[0] += served
                return max(end, present)
            chosen = slot if at == begin and slot >= 0 else state.strategy[at]
            step = options.first[options.group[at], chosen]
            tensor, r = at, GPU
            duration = options.compute[at]
            start = max(time, free[GPU])
            if at > begin and start + state.later[at] >= beat:
                state.events[0] += served
                return np.inf
            finish = start + duration
            if resource[step] == GPU:
                finish += seconds[step]
                step += 1
            at += 1
            times[NEXT] = finish if at < count else np.inf
        else:
            tensor, step = tensors[which, head[which]], steps[which, head[which]]
            head[which] += 1
            times[which] = ready[which, head[which]] if head[which] < tail[which] else np.inf
            r = resource[step]
            start = max(time, free[r])
            finish = start + seconds[step]
            step += 1
        idle[r] += start - free[r]
        free[r] = finish
        if totals[r] + idle[r] >= beat or finish >= beat:
            state.events[0] += served
            return np.inf
        if resource[step] >= 0:
            if head[r] == tail[r]:
                times[r] = finish
            ready[r, tail[r]], tensors[r, tail[r]], steps[r, tail[r]] = finish, tensor, step
            tail[r] += 1
        elif finish > end:
            end = finish
    state.events[0] += served
    return end


@njit(cache=True, nogil=True, general=True)
def _same(at, time, state):  # type: ignore[no-untyped-def]
    """Whether all that follows computation `at` is as in the present strategy."""
    checkpoint, base, trial = state.checkpoints[at], state.base, state.scratch
    for r in range(4):
        if max(state.free[r], time) != max(checkpoint[8 + r], time):
            return False
        if state.tail[r] - state.head[r] != checkpoint[4 + r] - checkpoint[r]:
            return False
    for r in range(4):
        shift = int(checkpoint[r]) - state.head[r]
        for entry in range(state.head[r], state.tail[r]):
            if (
                trial.ready[r, entry] != base.ready[r, entry + shift]
                or trial.step[r, entry] != base.step[r, entry + shift]
                or trial.tensor[r, entry] != base.tensor[r, entry + shift]
            ):
                return False
    return True


@njit(cache=True, nogil=True, general=True)
def _best_slot(tensor, mask, time, present, options, state):  # type: ignore[no-untyped-def]
    """Return the best slot of a tensor, among the kinds in `mask`, and its time.

    It is the present one, and `time`, where no other is below `time`. present: the time of the
    present strategy.
    """
    group, now = options.group[tensor], state.strategy[tensor]
    demands, kinds, count = options.demands[group], options.kind[group], options.counts[group]
    totals, others, checkpoint = state.totals, state.others, state.checkpoints[tensor]
    computed = max(checkpoint[16], checkpoint[8 + GPU]) + options.compute[tensor]
    room = np.empty(6)  # each resource's end, the tensor's and that of all later ones without it
    for r in range(4):
        others[r] = totals[r] - demands[now, r]
        room[r] = others[r] + checkpoint[12 + r]
    room[4], room[5] = computed, computed + state.later[tensor + 1]
    best, beat = now, time * (1 - SLACK)
    for slot in range(count):
        hopeless = slot == now or not (mask >> kinds[slot]) & 1
        for bound in range(6):
            hopeless |= room[bound] + demands[slot, bound] >= beat
        if hopeless:
            continue
        for r in range(4):
            totals[r] = others[r] + demands[slot, r]
        found = _run(tensor, slot, beat, present, False, options, state)
        if found < beat:
            best, time, beat = slot, found, found * (1 - SLACK)
    for r in range(4):
        totals[r] = others[r] + demands[now, r]
    state.events[0] += count // SKIPPED
    return best, time


@njit(cache=True, nogil=True, general=True)
def _improve(limit, time, options, state):  # type: ignore[no-untyped-def]
    """Change single tensors as long as that helps; return the final time."""
    unchanged, tensor = 0, options.compute.size
    while unchanged < options.compute.size and state.events[0] < limit:
        tensor = tensor - 1 if tensor > 0 else options.compute.size - 1
        slot, _ = _best_slot(tensor, 7, time, time, options, state)
        unchanged += 1
        if slot != state.strategy[tensor]:
            time = _change(tensor, slot, options, state)
            unchanged = 0
    return time


@njit(cache=True, nogil=True, general=True)
def _spans(options, state, begun, ended):  # type: ignore[no-untyped-def]
    """Write when each tensor's first communication begins and its last one ends."""
    ready, tensors, steps = state.scratch
    resource, seconds = options.resource, options.seconds
    head, tail, free = np.zeros(4, np.int64), np.zeros(4, np.int64), np.zeros(4)
    at, next_compute = 0, 0.0
    while True:
        time, tensor, which = np.inf, options.compute.size, -1
        if at < options.compute.size:
            time, tensor, which = next_compute, at, NEXT
        for r in range(4):
            if head[r] < tail[r]:
                t = ready[r, head[r]]
                if t < time or (t == time and tensors[r, head[r]] < tensor):
                    time, tensor, which = t, tensors[r, head[r]], r
        if which < 0:
            break
        if which == NEXT:
            r, step = GPU, options.first[options.group[at], state.strategy[at]]
            start = max(time, free[GPU])
            finish = start + options.compute[at]
            if resource[step] == GPU:
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
