"""A job: what each option of each tensor costs, as numbers that the timeline and searches read.

Tensors of one size share their candidates. An option of the tree is a candidate if it is the best
one under some weights of the four resources' times (a grid of weights), over all options or over
those with the GPU alone; and, for Algorithm 2, if it is such a one with the CPU in the GPU's place.
Neighbouring tasks on one resource are one step. This keeps 10 to 60 of 4,341. It is a rule of
thumb: the order of the steps plays a part in the timeline, too. A job may have more candidates:
those that are cheapest at given prices of the resources, or all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from gradplane.planner.cost_kernels import (
    Floats,
    Ints,
    cheapest,
    compile_steps,
    demands,
    few_cheapest,
    loads,
)
from gradplane.planner.costs import CPU, GPU, CostModel, encode, offered
from gradplane.planner.inputs import Compression, Model, PlannerError, System
from gradplane.planner.options import Constraint, Option, constraint, tree

Step = tuple[int, float]
"""A resource (an index of costs.RESOURCES) and the seconds on it."""

PLAIN, ON_GPU, MIXED = range(3)  # what an option compresses with: nothing, the GPU, other
SIZES = 256  # up to so many different sizes have candidates of their own
CHEAPEST = 8  # candidates at each price of the resources
END = -1
_WEIGHTS = np.array(
    sorted({tuple(np.divide(w, max(w))) for w in product((0.01, 0.1, 1.0), repeat=4)}, reverse=True)
)


@dataclass(frozen=True)
class Candidates:
    """Tensors in backward order, and the candidates of each.

    compute, size, group: a number each for every tensor; tensors of a group share candidates.
    first, kind, mirror, option: [group, slot]: where the steps of a candidate begin in `resource`
    and `seconds` (END closes them); what it compresses with; the slot with the CPU in the GPU's
    place, or -1; its index among `options`. count: candidates by group. Slot 0 does not compress.
    """

    compute: Floats
    size: Ints
    group: Ints
    first: Ints
    kind: Ints
    mirror: Ints
    option: Ints
    count: Ints
    resource: Ints
    seconds: Floats
    options: Sequence[Option] = ()

    @cached_property
    def demands(self) -> Floats:
        """[group, slot, 6]: seconds by resource, on all, and of a GPU step at the start.

        Infinity where there is no such slot.
        """
        found: Floats = demands(self.first, self.count, self.resource, self.seconds)
        return found

    @property
    def loads(self) -> Floats:
        """[group, slot, resource]: each candidate's seconds; infinity where there is no such."""
        return self.demands[:, :, :4]

    @cached_property
    def longest(self) -> int:
        """The most steps of a candidate, and its END."""
        ends = np.flatnonzero(self.resource == END)
        return int(np.diff(ends, prepend=-1).max())

    def steps(self, tensor: int, slot: int) -> list[Step]:
        """Return the steps of a candidate of a tensor."""
        found, at = [], int(self.first[self.group[tensor], slot])
        while self.resource[at] != END:
            found.append((int(self.resource[at]), float(self.seconds[at])))
            at += 1
        return found


def job(
    compute: Sequence[float],
    size: Sequence[int],
    candidates: Sequence[Sequence[Sequence[Step]]],
    kinds: Sequence[Sequence[int]] | None = None,
    mirrors: Sequence[Sequence[int]] | None = None,
) -> Candidates:
    """Return a job from plain steps: for each tensor its candidates, for each its steps.

    kinds, mirrors: as in Candidates, by default derived: a candidate with the CPU is MIXED, one
    with more GPU steps than the first is ON_GPU; no mirrors.
    """
    slots = max(map(len, candidates))
    shape = (len(candidates), slots)
    first, kind, mirror = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1)
    resource: list[int] = []
    seconds: list[float] = []
    for tensor, options in enumerate(candidates):
        for slot, steps in enumerate(options):
            first[tensor, slot] = len(resource)
            used = {r for r, _ in steps}
            kind[tensor, slot] = MIXED if CPU in used else ON_GPU if GPU in used else PLAIN
            for r, duration in steps:
                if duration > 0:
                    resource.append(r)
                    seconds.append(float(duration))
            resource.append(END)
            seconds.append(0.0)
    if kinds is not None:
        kind = np.array(kinds)
    if mirrors is not None:
        mirror = np.array(mirrors)
    return Candidates(
        np.array(compute, float), np.array(size), np.arange(len(size)), first, kind, mirror,
        np.tile(np.arange(slots), (len(size), 1)), np.array([len(c) for c in candidates]),
        np.array(resource), np.array(seconds),
    )  # fmt: skip


def build(
    model: Model, compression: Compression, system: System, constraints: Sequence[str] = ()
) -> Candidates:
    """Return the job of a model with a codec on a system, under the user's constraints.

    Raises PlannerError for an unknown constraint, and for constraints that leave no option.
    """
    return Builder(compression, system, constraints).job(
        [t.compute for t in model.tensors], [t.values for t in model.tensors]
    )


@dataclass(frozen=True)
class _Tables:
    """The options of a tree, first those without compression; their codes, kinds and mirrors."""

    options: list[Option]
    codes: Ints
    kinds: Ints
    mirrors: Ints


@lru_cache(16)
def _tables(
    network: tuple[str, ...], shapes: tuple[str, ...], constraints: tuple[str | Constraint, ...]
) -> _Tables:
    tests = [constraint(each) if isinstance(each, str) else each for each in constraints]
    options = [option for option in tree(network, shapes) if all(test(option) for test in tests)]
    if not options:
        raise PlannerError(
            f"no option is left by the constraints {', '.join(map(str, constraints))}"
        )
    options.sort(key=lambda option: option.compressions > 0)
    index = {option: number for number, option in enumerate(options)}
    used = [option.devices for option in options]
    kinds = [PLAIN if not u else ON_GPU if u == {"gpu"} else MIXED for u in used]
    mirrors = [
        index.get(option.on("cpu"), -1) if kind == ON_GPU else -1
        for option, kind in zip(options, kinds, strict=True)
    ]
    return _Tables(options, encode(options), np.array(kinds), np.array(mirrors))


class Builder:
    """Makes jobs of a codec on a system: the tree is generated once, under the constraints.

    A constraint is a text, as `options.constraint` reads it, or a test of an option.
    """

    def __init__(
        self, compression: Compression, system: System, constraints: Sequence[str | Constraint] = ()
    ) -> None:
        self.tables = _tables(*offered(compression, system), tuple(constraints))
        self.costs = CostModel(compression, system)
        self._loads: dict[bytes, Floats] = {}  # of the sizes asked for last

    def job(
        self,
        compute: Sequence[float] | Floats,
        size: Sequence[int] | Ints,
        every: bool = False,
        prices: Floats | None = None,
    ) -> Candidates:
        """Return the job of tensors with these computation times and sizes.

        every: each option is a candidate, its number its slot. prices: [price, resource]: the
        options that are cheapest at one of them are candidates, too, after those without prices.
        """
        sizes, group = np.unique(np.array(size, np.int64), return_inverse=True)
        if every:
            options = list(range(len(self.tables.options)))
            fronts = _Fronts([options], np.zeros(len(sizes), np.int64))
        else:
            fronts = self._fronts(sizes.astype(float), prices)
        lists = fronts.lists
        slots = max(map(len, lists))
        chosen = np.full((len(sizes), slots), -1, np.int64)
        for row, members in zip(chosen, (lists[at] for at in fronts.of), strict=True):
            row[: len(members)] = members
        first, resource, seconds = compile_steps(
            chosen, self.tables.codes, sizes.astype(float), self.costs.link, self.costs.curves
        )
        mirror = np.full(chosen.shape, -1, np.int64)
        tables = [self._mirror_slots(members) for members in lists]
        for row, at in zip(mirror, fronts.of, strict=True):
            row[: len(lists[at])] = tables[at]
        return Candidates(
            np.array(compute, float), np.array(size, np.int64), group.astype(np.int64), first,
            np.where(chosen >= 0, self.tables.kinds[chosen], MIXED), mirror, chosen,
            (chosen >= 0).sum(axis=1), resource, seconds, self.tables.options,
        )  # fmt: skip

    def _mirror_slots(self, members: list[int]) -> list[int]:
        slot = {option: at for at, option in enumerate(members)}
        return [slot.get(int(self.tables.mirrors[option]), -1) for option in members]

    def _fronts(self, sizes: Floats, prices: Floats | None) -> _Fronts:
        """Return the candidates of each size; for many sizes, those of the nearest on a grid."""
        grid, of = sizes, np.arange(len(sizes))
        if len(sizes) > SIZES:
            grid = np.unique(np.rint(np.geomspace(sizes[0], sizes[-1], SIZES // 2)))
            of = np.abs(np.log(sizes)[:, None] - np.log(grid)[None, :]).argmin(axis=1)
        key = grid.tobytes()
        if key not in self._loads:
            found = loads(self.tables.codes, grid, self.costs.link, self.costs.curves)
            self._loads = {key: found}
        return _Fronts([self._front(times, prices) for times in self._loads[key]], of)

    def _front(self, times: Floats, prices: Floats | None) -> list[int]:
        best = cheapest(times, self.tables.kinds, _WEIGHTS).ravel().tolist()
        best += [int(self.tables.mirrors[at]) for at in best if at >= 0]
        if prices is not None:
            best += few_cheapest(times, prices, min(CHEAPEST, len(times))).ravel().tolist()
        return [at for at in dict.fromkeys(best) if at >= 0]


@dataclass(frozen=True)
class _Fronts:
    lists: list[list[int]]
    of: Ints
