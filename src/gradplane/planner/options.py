"""The decision tree of Espresso's section 4.2: all valid compression options of a tensor.

An option is a path through the tree, a sequence of action tasks: whether to compress (dimension 1),
with the GPU or the CPU (2), by which collective routines (3), and where (4). The paper's three
pruning rules determine the functions here: which tasks may follow a task, which are a first
or second step, and that the routines of both steps pair.

    >>> from gradplane.planner.options import tree
    >>> options = list(tree())
    >>> len(options)
    4341
    >>> print(options[0])
    allreduce@flat

4,341 is the number that the paper states for its tree. The further options of a system's network
(`network`) are additional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradplane import _suggestions
from gradplane.planner.inputs import PlannerError

DEVICES = ("gpu", "cpu")
PAIRS = {"reduce-scatter": "allgather", "reduce": "broadcast"}  # routines of uncompressed tensors
COMPRESSED_PAIRS = {"alltoall": "allgather", "gather": "broadcast"}
MARKED = "tos"  # values that the edge switches compress
UNCOMPRESSED_NETWORK = ("switch-int32", MARKED, "server")  # instead of an allreduce
COMPRESSED_NETWORK = ("switch-codes",)  # codes that the switch adds

SWITCHED = ("switch-int32", *COMPRESSED_NETWORK)  # sums in a switch


class Task(NamedTuple):
    """An action task: its row in the paper's Table 3, its choice there, and its phase.

    kind: "comp", "decomp", or a communication: "comm" (indivisible), "comm1", "comm2" (the steps of
    a divisible scheme), each with "_comp" for a compressed tensor. phase: "flat", "intra1",
    "inter", "intra2".
    """

    kind: str
    choice: str
    phase: str

    def __str__(self) -> str:
        if self.kind in ("comp", "decomp"):
            return f"{self.kind}ress:{self.choice}"
        mark = "*" if self.kind.endswith("_comp") else ""
        return f"{self.choice}{mark}@{self.phase}"


class Option(tuple[Task, ...]):
    """A path through the tree. As text, "*" marks the communication of a compressed tensor."""

    __slots__ = ()

    def __str__(self) -> str:
        return " > ".join(map(str, self))

    @property
    def compressions(self) -> int:
        """The number of times that the tensor is compressed."""
        return sum(task.kind == "comp" for task in self)

    @property
    def devices(self) -> frozenset[str]:
        """The devices that compress and decompress."""
        return frozenset(task.choice for task in self if task.kind in ("comp", "decomp"))

    def on(self, device: str) -> Option:
        """Return the option with all compression and decompression on one device."""
        return Option(
            task._replace(choice=device) if task.kind in ("comp", "decomp") else task
            for task in self
        )


Path = tuple[Task, ...]


def tree(
    network: Sequence[str] = (), shapes: Sequence[str] = ("flat", "hierarchical")
) -> Iterator[Option]:
    """Yield all valid options: first of flat, then of hierarchical communication."""
    if "flat" in shapes:
        offered = () if "hierarchical" in shapes else tuple(network)
        yield from map(
            Option, _scheme("flat", offered, lambda compressed: _done(compressed, "flat"))
        )
    if "hierarchical" in shapes:
        yield from map(Option, _hierarchical(tuple(network)))


def _done(compressed: bool, phase: str) -> Iterator[Path]:
    """Yield the end of a path: a compressed tensor is decompressed."""
    yield from _on_devices("decomp", phase) if compressed else iter([()])


def _on_devices(kind: str, phase: str) -> Iterator[Path]:
    return ((Task(kind, device, phase),) for device in DEVICES)


def _hierarchical(network: tuple[str, ...]) -> Iterator[Path]:
    step: Path
    for routine in PAIRS:
        step = (Task("comm1", routine, "intra1"),)
        yield from (step + rest for rest in _between(network, PAIRS[routine], False))
    for comp in _on_devices("comp", "intra1"):
        for routine in COMPRESSED_PAIRS:
            step = (*comp, Task("comm1_comp", routine, "intra1"))
            second = COMPRESSED_PAIRS[routine]
            # A switch adds codes of one tensor, not those that several GPUs have given.
            yield from (step + rest for rest in _between((), second, True))
            for decomp in _on_devices("decomp", "intra1"):
                yield from (step + decomp + rest for rest in _between(network, second, False))


def _between(network: tuple[str, ...], second: str, compressed: bool) -> Iterator[Path]:
    """Yield the communication between machines and all after it: the sub-trees T3 and T4."""

    def after(still: bool) -> Iterator[Path]:
        return _second_inside(second, still)

    if compressed:
        yield from _compressed("inter", network, after)
    else:
        yield from _scheme("inter", network, after)


def _second_inside(routine: str, compressed: bool) -> Iterator[Path]:
    """Yield the second step inside the machine: T1 (uncompressed) and T2 (compressed)."""
    last = (Task("comm2_comp", routine, "intra2"),)
    if compressed:
        yield from (last + end for end in _done(True, "intra2"))
        for decomp in _on_devices("decomp", "inter"):
            yield from (decomp + rest for rest in _second_inside(routine, False))
        return
    yield (Task("comm2", routine, "intra2"),)
    for comp in _on_devices("comp", "intra2"):
        yield from (comp + last + end for end in _done(True, "intra2"))


After = Callable[[bool], Iterator[Path]]


def _scheme(phase: str, network: tuple[str, ...], after: After) -> Iterator[Path]:
    """Yield a phase whose input is not compressed (T3 without the second step inside)."""
    for choice in ("allreduce", *(name for name in network if name in UNCOMPRESSED_NETWORK)):
        yield from ((Task("comm", choice, phase), *rest) for rest in after(False))
    for routine, second in PAIRS.items():
        step = (Task("comm1", routine, phase),)
        yield from (step + rest for rest in _second(phase, second, after))
    for comp in _on_devices("comp", phase):
        yield from (comp + rest for rest in _compressed(phase, network, after))


def _compressed(phase: str, network: tuple[str, ...], after: After) -> Iterator[Path]:
    """Yield a phase whose input is compressed (T4 without the second step inside)."""
    for choice in ("allgather", *(name for name in network if name in COMPRESSED_NETWORK)):
        yield from ((Task("comm_comp", choice, phase), *rest) for rest in after(True))
    for routine, second in COMPRESSED_PAIRS.items():
        step = (Task("comm1_comp", routine, phase),)
        last = (Task("comm2_comp", second, phase),)
        yield from (step + last + rest for rest in after(True))
        for decomp in _on_devices("decomp", phase):
            yield from (step + decomp + rest for rest in _second(phase, second, after))


def _second(phase: str, routine: str, after: After) -> Iterator[Path]:
    """Yield the second step of a divisible scheme; its input is not compressed (T5)."""
    yield from ((Task("comm2", routine, phase), *rest) for rest in after(False))
    for comp in _on_devices("comp", phase):
        step = (*comp, Task("comm2_comp", routine, phase))
        yield from (step + rest for rest in after(True))


# -- constraints --------------------------------------------------------------------------------

Constraint = Callable[[Option], bool]


def constraint(text: str) -> Constraint:
    """Return the test that a constraint's text stands for; PlannerError for an unknown one.

    compressions<=N   at most N compressions a tensor
    device=gpu|cpu    compression and decompression on this device only
    compress=all      every tensor is compressed
    compress=inter    only what passes between machines is compressed
    without=ROUTINE   no such routine ("allgather", "switch-codes", ...)
    shape=flat|hierarchical
    """
    name, _, value = text.replace("<=", "=").partition("=")
    if name == "compressions" and value.isdigit():
        return lambda option: option.compressions <= int(value)
    if name == "device" and value in DEVICES:
        return lambda option: option.devices <= {value}
    if text == "compress=all":
        return lambda option: option.compressions > 0
    if text == "compress=inter":
        return lambda option: (
            not any(
                task.kind.endswith("_comp") and task.phase in ("intra1", "intra2")
                for task in option
            )
        )
    if name == "without" and value in _ROUTINES:
        return lambda option: all(task.choice != value for task in option)
    if text in ("shape=flat", "shape=hierarchical"):
        return lambda option: (option[-1].phase == "flat") == (value == "flat")
    known = ["compressions<=1", "device=gpu", "device=cpu", "compress=all", "compress=inter"]
    known += ["shape=flat", "shape=hierarchical", *(f"without={routine}" for routine in _ROUTINES)]
    hint = _suggestions.hint(text, known, _suggestions.quoted)
    raise PlannerError(f"constraint {text}: {hint}")


_ROUTINES = sorted(
    {"allreduce", *PAIRS, *PAIRS.values(), *COMPRESSED_PAIRS}
    | {*UNCOMPRESSED_NETWORK, *COMPRESSED_NETWORK}
)


def draw(options: Sequence[Option]) -> str:
    """Return the tree of options as text: one task a line, indented below what precedes it.

    The two devices of a compression are one line, as they are one arrow in the paper's Fig. 8.
    """
    lines: list[str] = []
    before: tuple[str, ...] = ()
    for option in dict.fromkeys(option.on("gpu/cpu") for option in options):
        path = tuple(map(str, option))
        common = next((n for n, (a, b) in enumerate(zip(path, before, strict=False)) if a != b), 0)
        lines += ["  " * depth + path[depth] for depth in range(common, len(path))]
        before = path
    return "\n".join(lines)
