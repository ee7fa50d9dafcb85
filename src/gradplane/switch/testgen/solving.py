"""Inputs that take another way at a branch of a recorded path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import z3

from gradplane._splitmix64 import mix
from gradplane.switch.testgen.recorder import (
    MOST_LENGTH,
    MOST_PORT,
    Given,
    Inputs,
    Run,
    Way,
    choice_of,
)
from gradplane.switch.testgen.symbols import Term

EFFORT = 2_000_000  # z3's units of work for one question: a limit that is the same on every machine
SMALL_LENGTHS = (64, 128, 256, 1024)
_BYTE = re.compile(r"p(\d+)\[(\d+)\]")
_PACKET = re.compile(r"p(\d+)\.(length|port)")


class Solver:
    """Turns branches. ports: how many a packet can come from.

    Only conditions that share variables with the one that is turned are solved; all other values
    stay as they were."""

    def __init__(self, ports: int, seed: int) -> None:
        self.ports = ports
        self.seed = seed
        self.gave_up = 0
        self._variables: dict[int, tuple[Term, frozenset[str]]] = {}  # by the numbers that z3 gives
        self._known: dict[int, tuple[Term, frozenset[str]]] = {}

    def turned(self, run: Run, index: int, way: Way) -> Inputs | None:
        """Return inputs that go as the run did up to step `index`, and there another way; None if
        there are none."""
        if way.choice is not None:
            number, choice = way.choice
            made = {n: c for n, c in run.inputs.choices.items() if n < number}
            return replace(run.inputs, choices={**made, number: choice})
        assert way.condition is not None
        target, before = way.condition(), run.path[:index]
        for kept in sorted({0, *(b.soft for b in before)}, reverse=True):
            holds = [b.holds for b in before if b.holds is not None and b.soft <= kept]
            found = self._solved(run.inputs, self._related(target, holds), way.size)
            if found is not None:
                most = run.path[index].choices
                choices = {n: c for n, c in found.choices.items() if n < most}
                return replace(found, choices=choices)
        return None

    def _related(self, target: Term, holds: list[Term]) -> list[Term]:
        """Return the target with the conditions that share variables with it."""
        known, chosen = set(self._names(target)), [target]
        left = [(one, self._names(one)) for one in holds]
        while True:
            joined = [pair for pair in left if not known.isdisjoint(pair[1])]
            if not joined:
                return chosen
            left = [pair for pair in left if known.isdisjoint(pair[1])]
            for one, names in joined:
                chosen.append(one)
                known |= names

    def _names(self, one: Term) -> frozenset[str]:
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
                names = frozenset((current.decl().name(),))
            self._variables[current.get_id()] = current, names
            stack.pop()
        return self._variables[one.get_id()][1]

    def _solved(self, inputs: Inputs, conditions: list[Term], size: int | None) -> Inputs | None:
        solver = z3.SolverFor("QF_BV")
        solver.set("rlimit", EFFORT)
        solver.set("random_seed", self.seed & 0xFFFF)
        context = z3.main_ctx().ref()
        for one in conditions:  # as solver.add does, which looks at each for long
            z3.Z3_solver_assert(context, solver.solver, one.as_ast())
        names = frozenset().union(*(self._names(one) for one in conditions))
        solver.add(*self._limits(names))
        for wishes in self._wishes(inputs, names, size):
            answer = solver.check(*wishes)
            if answer == z3.sat:
                return self._taken_over(inputs, solver.model())
            if answer == z3.unknown:
                self.gave_up += 1
                return None
        return None

    def _limits(self, names: Iterable[str]) -> Iterator[Term]:
        for name in sorted(names):
            if name.endswith(".length"):
                yield z3.ULE(z3.BitVec(name, 16), MOST_LENGTH)
                yield z3.UGE(z3.BitVec(name, 16), 1)
            elif name.endswith(".port"):
                yield z3.ULT(z3.BitVec(name, 32), self.ports)

    def _wishes(
        self, inputs: Inputs, names: frozenset[str], size: int | None
    ) -> Iterator[list[Term]]:
        """Yield what a solution should have besides, the best first: small ports, and lengths that
        stay, become `size`, or are small."""
        ports, lengths = [], []
        for name in sorted(names):
            if (found := _PACKET.fullmatch(name)) is None:
                continue
            if found[2] == "port":
                ports.append(z3.ULT(z3.BitVec(name, 32), MOST_PORT))
            else:
                lengths.append((name, len(inputs.packets[int(found[1])].data)))
        stays = [z3.BitVec(name, 16) == size for name, size in lengths]
        yield [*ports, *stays]
        if len(lengths) == 1 and size is not None:
            yield [*ports, z3.BitVec(lengths[0][0], 16) == size]
        if lengths:
            for most in SMALL_LENGTHS:
                yield [*ports, *(z3.ULE(z3.BitVec(name, 16), most) for name, _ in lengths)]
        if ports or lengths:
            yield []

    def _taken_over(self, inputs: Inputs, model: z3.ModelRef) -> Inputs:
        """Return inputs with the values that a model gives."""
        ports = [given.port for given in inputs.packets]
        packets = [bytearray(given.data) for given in inputs.packets]
        values, choices = dict(inputs.values), dict(inputs.choices)
        lengths: dict[int, int] = {}
        for declared in sorted(model.decls(), key=lambda d: d.name()):
            name, found = declared.name(), model[declared]
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
        for number, size in lengths.items():
            kept = packets[number][:size]
            packets[number] = kept + self.filler(len(kept), size)
        pairs = zip(ports, packets, strict=True)
        made = tuple(Given(port, bytes(data)) for port, data in pairs)
        return Inputs(made, choices, values)

    def filler(self, start: int, end: int) -> bytes:
        """Return bytes that decide nothing yet."""
        return bytes(mix(self.seed + at) & 0xFF if self.seed else 0 for at in range(start, end))
