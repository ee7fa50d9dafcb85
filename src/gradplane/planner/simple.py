"""Compression on one link with three options per tensor: the model of Espresso's figures 2 and 9.

A job is a sequence of tensors in backward order. A strategy is a string with a letter for each:

N   the tensor is not compressed
G   the GPU compresses it, right after its computation and before the next tensor's
C   the CPU compresses it, beside the GPU, one tensor after another in backward order

The GPU runs in program order, the link serves first come first served by the time at which a
tensor is ready, ties in backward order, and nothing is preempted. Decompression takes no time. The
output layer is the last tensor in backward order. All times are numbers of one unit; with ints
every result is exact.

    >>> from gradplane.planner.simple import Tensor, best, iteration_time
    >>> job = [Tensor(4, 2, 6, 2, 1, 3), Tensor(8, 3, 9, 3, 2, 4)]
    >>> iteration_time(job, "NN"), best(job), iteration_time(job, best(job))
    (17, 'CG', 10)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from gradplane.planner.costs import CPU, GPU, INTER
from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Candidates, job
from gradplane.planner.search import search

OPTIONS = "NGC"
EXACT = 7  # tensors up to which best() searches exhaustively
MEDIUM = 100  # tensors up to which best() goes through Algorithms 1 and 2 in full
COMBINATIONS = 200_000  # of offloads up to which it does so


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a job: its size, and the time that each of its tasks takes.

    Raises ValueError for a negative number.
    """

    size: int
    compute: float
    communicate: float
    communicate_compressed: float
    compress_gpu: float
    compress_cpu: float

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} = {value!r}: it must be a number that is at least 0")


class Communication(NamedTuple):
    """A tensor on the link: its index in backward order, and when it starts and ends."""

    tensor: int
    start: float
    end: float


def communications(tensors: Sequence[Tensor], strategy: str) -> list[Communication]:
    """Return the communications in the order of the link.

    Raises ValueError for a strategy that is not one letter of N, G and C a tensor.
    """
    _check(tensors, strategy)
    free: float = 0
    found = []
    for ready, index, duration in sorted(_requests(tensors, strategy)):
        start = max(ready, free)
        free = start + duration
        found.append(Communication(index, start, free))
    return found


def iteration_time(tensors: Sequence[Tensor], strategy: str) -> float:
    """Return the time from the first computation to the end of the last communication.

    Raises ValueError for a strategy that is not one letter of N, G and C a tensor.
    """
    _check(tensors, strategy)
    return _time(tensors, strategy)


def algorithm1(tensors: Sequence[Tensor]) -> str:
    """Return the strategy of Espresso's Algorithm 1: which tensors the GPU compresses.

    The tensors are visited by descending size, among equal sizes those nearer to the output layer
    first. An uncompressed tensor that is communicated before a bubble is never visited again; ties
    keep the tensor uncompressed.
    """
    strategy = "N" * len(tensors)
    left = set(range(len(tensors))) - _before_bubbles(tensors, strategy)
    for index in sorted(left, key=lambda i: (-tensors[i].size, -i)):
        if index not in left:
            continue
        compressed = _with(strategy, index, "G")
        if _time(tensors, compressed) < _time(tensors, strategy):
            strategy = compressed
        left -= _before_bubbles(tensors, strategy)
    return strategy


def algorithm2(tensors: Sequence[Tensor], strategy: str) -> str:
    """Return the strategy of Espresso's Algorithm 2: which of the compressions go to the CPU.

    Of each group of equally large tensors that the GPU compresses, the u that are farthest from the
    output layer are offloaded; every combination of the groups' u counts. Ties go to the fewest
    offloads. Combinations that a lower bound rules out are not evaluated. (Lemma 1, that the
    farthest are the best to offload, does not hold in general, so this is no optimum.)

    Raises ValueError for a strategy that is not one letter of N, G and C a tensor.
    """
    _check(tensors, strategy)
    choices = [
        [{i: "C" if at < u else "G" for at, i in enumerate(group)} for u in range(len(group) + 1)]
        for group in _compressed(tensors, strategy)
    ]
    return _search(tensors, list(strategy), choices)


def optimum(tensors: Sequence[Tensor]) -> str:
    """Return a strategy of the least iteration time, by exhaustive search.

    The time grows exponentially; a lower bound rules out most strategies, so that a dozen tensors
    take about a second. Ties go to the fewest offloads, then to the fewest compressions.
    """
    choices = [[{index: option} for option in OPTIONS] for index in range(len(tensors))]
    return _search(tensors, ["N"] * len(tensors), choices)


def best(tensors: Sequence[Tensor]) -> str:
    """Return the strategy of our search, never slower than that of Algorithms 1 and 2.

    A small job is searched exhaustively, a larger one by the planner's search on its compiled
    timeline. Algorithm 2 goes through at most COMBINATIONS, above MEDIUM tensors a thousand.
    """
    if len(tensors) <= EXACT:
        return optimum(tensors)
    found = ["".join(OPTIONS[slot] for slot in search(_planners_job(tensors)))]
    if len(tensors) <= MEDIUM:
        found.append(algorithm1(tensors))
        groups = _compressed(tensors, found[-1])
        if prod(len(group) + 1 for group in groups) <= COMBINATIONS:
            found.append(algorithm2(tensors, found[-1]))
    return min(found, key=lambda strategy: _time(tensors, strategy))


def _planners_job(tensors: Sequence[Tensor]) -> Candidates:
    """Return the tensors as a planner's job: three candidates each, on one of its two links."""
    candidates = [
        [
            [(INTER, t.communicate)],
            [(GPU, t.compress_gpu), (INTER, t.communicate_compressed)],
            [(CPU, t.compress_cpu), (INTER, t.communicate_compressed)],
        ]
        for t in tensors
    ]
    count = len(tensors)
    return job(
        [t.compute for t in tensors],
        [t.size for t in tensors],
        candidates,
        [[PLAIN, ON_GPU, MIXED]] * count,
        [[-1, OPTIONS.index("C"), -1]] * count,
    )


# -- the timeline -------------------------------------------------------------------------------


def _requests(
    tensors: Sequence[Tensor], strategy: Sequence[str]
) -> Iterator[tuple[float, int, float]]:
    """Yield when each tensor is ready for the link, its index, and how long it takes there.

    The letter "?" is an undecided option; it takes the shorter of both communications and no time
    to compress, a lower bound.
    """
    gpu: float = 0
    cpu: float = 0
    for index, (tensor, option) in enumerate(zip(tensors, strategy, strict=True)):
        gpu += tensor.compute
        if option == "N":
            yield gpu, index, tensor.communicate
        elif option == "G":
            gpu += tensor.compress_gpu
            yield gpu, index, tensor.communicate_compressed
        elif option == "C":
            cpu = max(cpu, gpu) + tensor.compress_cpu
            yield cpu, index, tensor.communicate_compressed
        else:
            yield gpu, index, min(tensor.communicate, tensor.communicate_compressed)


def _time(tensors: Sequence[Tensor], strategy: Sequence[str]) -> float:
    free: float = 0
    for ready, _, duration in sorted(_requests(tensors, strategy)):
        free = max(ready, free) + duration
    return free


def _before_bubbles(tensors: Sequence[Tensor], strategy: str) -> set[int]:
    """Return the uncompressed tensors communicated before some bubble (Remove in Algorithm 1)."""
    link = communications(tensors, strategy)
    bubbles = [at for at in range(1, len(link)) if link[at].start > link[at - 1].end]
    before = link[: bubbles[-1]] if bubbles else []
    return {entry.tensor for entry in before if strategy[entry.tensor] == "N"}


def _compressed(tensors: Sequence[Tensor], strategy: str) -> list[list[int]]:
    """Return the tensors that the GPU compresses, in groups of one size, the largest first."""
    members = defaultdict(list)
    for index, option in enumerate(strategy):
        if option == "G":
            members[tensors[index].size].append(index)
    return [members[size] for size in sorted(members, reverse=True)]


def _check(tensors: Sequence[Tensor], strategy: str) -> None:
    if len(strategy) != len(tensors) or set(strategy) - set(OPTIONS):
        raise ValueError(
            f'strategy "{strategy}": it must be {len(tensors)} letters of N, G and C, one for each'
            " tensor in backward order"
        )


# -- searches -----------------------------------------------------------------------------------


def _with(strategy: str, index: int, option: str) -> str:
    return strategy[:index] + option + strategy[index + 1 :]


def _search(
    tensors: Sequence[Tensor], strategy: list[str], choices: Sequence[Sequence[dict[int, str]]]
) -> str:
    """Take one of the choices at each place so that the time, then the cost, is least."""
    open_ones = {index for place in choices for index in place[0]}
    best_key: tuple[float, int, int] | None = None
    best_strategy = "".join(strategy)
    trial = ["?" if index in open_ones else option for index, option in enumerate(strategy)]

    def descend(depth: int) -> None:
        nonlocal best_key, best_strategy
        key = (_time(tensors, trial), trial.count("C"), len(trial) - trial.count("N"))
        if depth == len(choices):
            if best_key is None or key < best_key:
                best_key, best_strategy = key, "".join(trial)
            return
        if best_key is not None and (key[0], key[1]) > (best_key[0], best_key[1]):
            return
        for choice in choices[depth]:
            for index, option in choice.items():
                trial[index] = option
            descend(depth + 1)
        for index in choices[depth][0]:
            trial[index] = "?"

    descend(0)
    return best_strategy
