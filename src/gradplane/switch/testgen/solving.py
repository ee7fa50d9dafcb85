"""Inputs that take another way at a branch of a recorded path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import z3

from gradplane._splitmix64 import mix
from gradplane.switch.testgen.runs import (
    MOST_LENGTH,
    MOST_PORT,
    Branch,
    Given,
    Inputs,
    Run,
    Way,
    choice_of,
)
from gradplane.switch.testgen.symbols import Term, variable

EFFORT = 2_000_000  # z3's units of work for one question: a limit that is the same on every machine
DROPS = 6  # times that steps are given up for a turn
MOST_GROUP = 0x8000
SMALL_LENGTHS = (64, 128, 256, 1024)
_BYTE = re.compile(r"p(\d+)\[(\d+)\]")
_PACKET = re.compile(r"p(\d+)\.(length|port)")


@dataclass(frozen=True)
class Turned:
    """The result of a turn. inputs: None if there are none. dropped: the steps of the path that are
    given up for it, or that contradict it. gave_up: z3 did."""

    inputs: Inputs | None
    dropped: frozenset[int] = frozenset()
    gave_up: bool = False


class Solver:
    """Turns branches. ports: how many a packet can come from. sums: checksums, by the variables
    that stand for them.

    Only conditions that share variables with the one that is turned are solved; all other values
    stay as they were. A checksum is a variable of its own there; then two bytes of what it is
    computed of, which nothing else depends on, are set so that it is right."""

    def __init__(self, ports: int, seed: int, sums: Mapping[str, Term]) -> None:
        self.sums = sums
        self.ports = ports
        self.seed = seed
        self.numbers: set[str] = set()  # the action data of 16 bits, which group numbers have
        self._never: dict[int, Term] = {}  # what is false, whatever a packet has
        self._variables: dict[int, tuple[Term, frozenset[str]]] = {}  # by the numbers that z3 gives
        self._known: dict[int, tuple[Term, frozenset[str]]] = {}

    def turned(
        self, run: Run, index: int, way: Way, needed: Callable[[Branch], bool] | None = None,
        keeps: bool = False,
    ) -> Turned:  # fmt: skip
        """Return inputs that go as the run did up to step `index`, and there another way.

        Where there are none, steps that contradict it are given up: first those that only fix a
        value. needed: whether a step must stay; None: all that are more. keeps: later lookups find
        what they have found."""
        if way.choice is not None:
            number, choice = way.choice
            made = {n: c for n, c in run.inputs.choices.items() if n < number}
            return Turned(replace(run.inputs, choices={**made, number: choice}))
        assert way.condition is not None
        target, before = way.condition(), run.path[:index]
        if target.get_id() in self._never:
            return Turned(None)
        held = {i: b.holds for i, b in enumerate(before) if b.holds is not None}
        pinned = frozenset[str]().union(*map(self.names, held.values()), self.names(target))
        question = _Question(
            self, run.inputs, target, self._related(target, held), way.size, pinned
        )
        dropped: set[int] = set()
        for _ in range(DROPS):
            found = question.ask(dropped)
            if found is None:
                return Turned(None, gave_up=True)
            if isinstance(found, Inputs):
                most = run.path[index].choices
                choices = {n: c for n, c in found.choices.items() if keeps or n < most}
                return Turned(replace(found, choices=choices), frozenset(dropped))
            softest = max((before[i].soft for i in found), default=0)
            if softest:
                dropped |= {i for i in held if before[i].soft == softest}
                continue
            hindering = [i for i in found if needed is not None and not needed(before[i])]
            if not hindering:
                if not found:
                    self._never[target.get_id()] = target
                return Turned(None, found)
            dropped.add(max(hindering))
        return Turned(None, frozenset(dropped))

    def _related(self, target: Term, held: Mapping[int, Term]) -> dict[int, Term]:
        """Return the conditions that share variables with the target, directly or by others."""
        known = set(self._reach(target))
        chosen: dict[int, Term] = {}
        left = {i: (one, self._reach(one)) for i, one in held.items()}
        while True:
            joined = [i for i, (_, names) in left.items() if not known.isdisjoint(names)]
            if not joined:
                return chosen
            for i in joined:
                chosen[i], names = left.pop(i)
                known |= names

    def _reach(self, one: Term) -> frozenset[str]:
        """Return the names of the variables in a term, and in what its checksums are of."""
        names = self.names(one)
        return names.union(*(self.names(self.sums[name]) for name in names & self.sums.keys()))

    def names(self, one: Term) -> frozenset[str]:
        """Return the names of the variables in a term. It is kept, so that its id stays its own."""
        if id(one) not in self._known:
            self._known[id(one)] = one, self._found(one)
        return self._known[id(one)][1]

    def _found(self, one: Term) -> frozenset[str]:
        stack = [one]
        while stack:
            current = stack[-1]
            if current.get_id() in self._variables:
                stack.pop()
                continue
            children = current.children()
            missing = [c for c in children if c.get_id() not in self._variables]
            if missing:
                stack += missing
                continue
            names: frozenset[str] = frozenset().union(
                *(self._variables[c.get_id()][1] for c in children)
            )
            if not children and current.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                name = current.decl().name()
                names = frozenset((name,))
                if z3.is_bv(current) and current.size() == 16 and name.startswith("e"):
                    self.numbers.add(name)
            self._variables[current.get_id()] = current, names
            stack.pop()
        return self._variables[one.get_id()][1]

    def filler(self, start: int, end: int) -> bytes:
        """Return bytes that decide nothing yet."""
        return bytes(mix(self.seed + at) & 0xFF if self.seed else 0 for at in range(start, end))


class _Question:
    """A condition that inputs should fulfil beside those of a path's steps, by their numbers."""

    def __init__(
        self, solver: Solver, inputs: Inputs, target: Term, steps: Mapping[int, Term],
        size: int | None, pinned: frozenset[str],
    ) -> None:  # fmt: skip
        self.solver, self.inputs, self._pinned = solver, inputs, pinned
        self._z3 = z3.SolverFor("QF_BV")
        self._z3.set("rlimit", EFFORT)
        self._z3.set("random_seed", solver.seed & 0xFFFF)
        self._assert(target)
        self._literals = {}
        for i, one in steps.items():
            self._literals[i] = literal = variable(f"s{i}", 0)
            self._assert(z3.Implies(literal, one))
        names = solver.names(target).union(*(solver.names(one) for one in steps.values()))
        self._sums = sorted(names & solver.sums.keys())
        self._z3.add(*self._limits(names))
        self._wishes = list(self._wished(names, size))

    def _assert(self, one: Term) -> None:
        # As add() does, which looks at each for long.
        z3.Z3_solver_assert(z3.main_ctx().ref(), self._z3.solver, one.as_ast())

    def ask(self, without: set[int]) -> Inputs | frozenset[int] | None:
        """Return inputs, or the steps that contradict the condition; None if z3 gives up."""
        steps = {i: one for i, one in self._literals.items() if i not in without}
        for wishes in self._wishes:
            answer = self._z3.check(*steps.values(), *wishes)
            if answer == z3.sat:
                model = self._z3.model()
                settled = self._settled(model)
                if settled is not None:
                    return self._taken_over(model, settled)
                self._z3.add(*(variable(n, 16) == self.solver.sums[n] for n in self._sums))
                self._sums = []
                return self.ask(without)
            if answer == z3.unknown:
                return None
        core = {one.get_id() for one in self._z3.unsat_core()}
        return frozenset(i for i, one in steps.items() if one.get_id() in core)

    def _settled(self, model: z3.ModelRef) -> dict[str, int] | None:
        """Return bytes that give the checksums the values that a model has for them; None where
        there are none."""
        settled: dict[str, int] = {}
        for name in self._sums:
            wanted, whole = model[variable(name, 16)], self.solver.sums[name]
            if wanted is None:
                continue
            known = {n: self._value(model, n, settled) for n in self.solver.names(whole)}
            free = [n for n in known if n not in self._pinned and n not in settled]
            for pair in _pairs(free):
                fixed = [(variable(n, 8), z3.BitVecVal(v, 8)) for n, v in known.items()
                         if n not in pair and v is not None]  # fmt: skip
                solver = z3.SolverFor("QF_BV")
                solver.add(z3.substitute(whole, *fixed) == wanted)
                if len(fixed) + 2 == len(known) and solver.check() == z3.sat:
                    found = solver.model()
                    settled |= {n: found.eval(variable(n, 8), True).as_long() for n in pair}
                    break
            else:
                return None
        return settled

    def _value(self, model: z3.ModelRef, name: str, settled: Mapping[str, int]) -> int | None:
        """Return the value of a packet's byte; None for anything else."""
        if name in settled:
            return settled[name]
        if (byte := _BYTE.fullmatch(name)) is None:
            return None
        found = model[variable(name, 8)]
        if found is not None:
            return int(found.as_long())
        data = self.inputs.packets[int(byte[1])].data
        return data[int(byte[2])] if int(byte[2]) < len(data) else 0

    def _limits(self, names: Iterable[str]) -> Iterator[Term]:
        for name in sorted(names):
            if name.endswith(".length"):
                yield z3.ULE(z3.BitVec(name, 16), MOST_LENGTH)
                yield z3.UGE(z3.BitVec(name, 16), 1)
            elif name.endswith(".port"):
                yield z3.ULT(z3.BitVec(name, 32), self.solver.ports)

    def _wished(self, names: frozenset[str], size: int | None) -> Iterator[list[Term]]:
        """Yield what a solution should have besides, the best first: small ports, group numbers
        that BMv2 takes, and lengths that stay, become `size`, or are small."""
        numbers = sorted(names & self.solver.numbers)
        ports, lengths = [z3.ULT(variable(name, 16), MOST_GROUP) for name in numbers], []
        for name in sorted(names):
            if (found := _PACKET.fullmatch(name)) is None:
                continue
            if found[2] == "port":
                ports.append(z3.ULT(z3.BitVec(name, 32), MOST_PORT))
            else:
                lengths.append((name, len(self.inputs.packets[int(found[1])].data)))
        stays = [z3.BitVec(name, 16) == size for name, size in lengths]
        yield [*ports, *stays]
        if len(lengths) == 1 and size is not None:
            yield [*ports, z3.BitVec(lengths[0][0], 16) == size]
        if lengths:
            for most in SMALL_LENGTHS:
                yield [*ports, *(z3.ULE(z3.BitVec(name, 16), most) for name, _ in lengths)]
        yield []

    def _taken_over(self, model: z3.ModelRef, settled: Mapping[str, int]) -> Inputs:
        """Return inputs with the values that a model gives; settled: bytes that it does not."""
        inputs = self.inputs
        ports = [given.port for given in inputs.packets]
        packets = [bytearray(given.data) for given in inputs.packets]
        values, choices = dict(inputs.values), dict(inputs.choices)
        lengths: dict[int, int] = {}
        for declared in sorted(model.decls(), key=lambda d: d.name()):
            name, found = declared.name(), model[declared]
            if name.startswith(("s", "k")):
                continue
            value = int(z3.is_true(found)) if z3.is_bool(found) else found.as_long()
            if (byte := _BYTE.fullmatch(name)) is not None:
                data = packets[int(byte[1])]
                if int(byte[2]) < len(data):
                    data[int(byte[2])] = value
            elif (known := _PACKET.fullmatch(name)) is not None:
                if known[2] == "port":
                    ports[int(known[1])] = value
                else:
                    lengths[int(known[1])] = value
            elif name.startswith("c"):
                choices[int(name[1:])] = choice_of(value)
            else:
                values[name] = value
        for name, value in settled.items():
            byte = _BYTE.fullmatch(name)
            assert byte is not None, name
            packets[int(byte[1])][int(byte[2])] = value
        for number, size in lengths.items():
            kept = packets[number][:size]
            packets[number] = kept + self.solver.filler(len(kept), size)
        pairs = zip(ports, packets, strict=True)
        made = tuple(Given(port, bytes(data)) for port, data in pairs)
        return Inputs(made, choices, values)


def _pairs(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of bytes that lie side by side in a packet."""
    known = set(names)
    for name in sorted(known):
        if (byte := _BYTE.fullmatch(name)) is not None:
            after = f"p{byte[1]}[{int(byte[2]) + 1}]"
            if after in known:
                yield name, after
