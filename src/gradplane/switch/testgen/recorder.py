"""Records the path that packets take, and decides what their lookups find.

What a table does with a key that no entry matches is a choice: an entry for just this key with one
of the actions, or none. An entry is made when it is looked up, from the key that the packet has, so
that it never constrains the packet; its action data are variables. Multicast groups and clone
sessions are made when a packet asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import z3

from gradplane.switch.interp.interpreter_values import Value
from gradplane.switch.ir.types import Bool, Type
from gradplane.switch.runtime.arrays import Register
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry, MemberRef
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.valuesets import ParserValueSet
from gradplane.switch.source import NOWHERE, Span
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.matches import by_rank, equal, exactly, first_of, matched
from gradplane.switch.testgen.runs import (
    DATA,
    MOST_LENGTH,
    Branch,
    Choice,
    Decision,
    Given,
    Goal,
    Inputs,
    Made,
    Other,
    Run,
    Way,
    number_of,
)
from gradplane.switch.testgen.symbols import (
    PacketBits,
    Piece,
    Symbol,
    Term,
    checksum,
    initial,
    is_symbolic,
    variable,
)

MISS = "miss"
TRIED_ENTRIES = 64  # of a table's entries in the source: so many are aimed at
MANY_ENTRIES = 256  # of a table with more the path knows the key only


class Recorder:
    """Records the run that is going on. `counts`: how often each choice was made in all runs;
    `gains`: how much these runs have covered, together."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self.state = switch.state
        self.counts: Counter[Hashable] = Counter()
        self.gains: Counter[Hashable] = Counter()
        self.fixed = False  # packets are as given; choices and action data vary, each by itself
        self.contents = False  # registers hold what a control plane has written, too
        self.sums: dict[str, Term] = {}  # checksums, by the variables that stand for them
        self.begin(Inputs(()))

    def begin(self, inputs: Inputs) -> None:
        """Start a run; the switch's state is as the program starts with it."""
        self.run = Run(replace(inputs, choices={}), Made(), [], set())
        self.inputs = inputs
        self.bits: dict[bytes, PacketBits] = {}
        self.cells: dict[tuple[str, int], Symbol] = {}
        self._found_cells: set[tuple[str, int]] = set()
        self.packet: tuple[bytes, Term] | None = None  # the one from a port, and its length
        self._fronted: tuple[bytes | None, int] = (None, 0)  # it behind headers, and their bytes
        self._emitted: dict[int, tuple[Any, list[Any]]] = {}
        self._entries: dict[str, list[tuple[Entry, tuple[Value, ...]]]] = {}
        self.data_names: dict[tuple[int, int, int], str] = {}  # of action data, for people
        self._taken: list[Goal] = []
        self._missed: dict[str, set[tuple[int, ...]]] = {}
        self.followed = True  # all that came back

    def arrive(self, number: int) -> Given:
        """Begin with packet `number`; its port has a term, too."""
        given, name = self.inputs.packets[number], f"p{number}"
        self.port = given.port
        if self.fixed:
            self.packet = None
            return given
        data = given.data + b""  # the bytes of packets are told apart by what they are
        self.bits = {data: initial(name, len(data))}
        self.packet = (data, variable(f"{name}.length", 16))
        return Given(Symbol(given.port, variable(f"{name}.port", 32)), data)

    # -- the path ---------------------------------------------------------------------------------

    def cover(self, goal: Goal) -> None:
        self.run.covered.add(goal)

    def summed(self, t: Type, value: Value) -> Term | None:
        """Return a variable for the internet checksum of a value; None where it has none."""
        made = checksum(t, value)
        if made is None:
            return None
        name = f"k{made.get_id()}"
        self.sums[name] = made
        return variable(name, 16)

    def step(self, branch: Branch) -> None:
        self.run.path.append(replace(branch, choices=len(self.run.inputs.choices)))

    def decide(
        self, goal: Goal, other: Goal, value: Value, condition: Term | None, merged: bool = False
    ) -> None:
        """Record a condition: `goal` was reached, `other` is where the opposite leads. merged: what
        follows has terms for both."""
        self.cover(goal)
        if condition is not None:
            holds, fails = (
                (condition, z3.Not(condition)) if value else (z3.Not(condition), condition)
            )
            self.step(Branch(goal, None if merged else holds, [Way(other, lambda: fails)]))

    def choose(
        self, goals: Sequence[Goal | None], terms: Sequence[Any], taken: Goal | None
    ) -> None:
        """Record one of several cases, of which the first that holds is taken; the last goal is
        reached where none does. terms: their conditions, or bools."""
        conditions = [_as_condition(one) for one in terms]
        ways, branch = [], None
        for i, goal in enumerate(goals):
            if i < len(conditions) and conditions[i] is None:
                continue
            if goal is taken and branch is None:
                branch = first_of(conditions, i)
            else:
                ways.append(Way(goal, first_of(conditions, i)))
        if any(isinstance(one, z3.ExprRef) for one in terms):
            self.step(Branch(taken, branch() if branch else None, ways))

    def fix(self, t: Type, value: Value, soft: int = DATA) -> None:
        """Record that a symbolic value was taken for the number that it is."""
        if isinstance(value, Symbol):
            same = value.term == (z3.BoolVal(bool(value)) if isinstance(t, Bool) else int(value))
            others = [] if soft else [Way(None, lambda: z3.Not(same))]
            self.step(Branch(None, same, others, soft))

    def indexed(self, at: Term, inside: bool, size: int, place: Span) -> None:
        """Record whether an index is inside a register: what is beyond its end is not kept, so
        that the way inside leads on."""
        if z3.is_bv_value(at):
            return
        goal: Goal = ("index", place, "inside" if inside else "outside")
        fits = z3.ULT(at, size)
        self.cover(goal)
        way = Way(("index", place, "inside"), partial(_same, fits))
        self.step(Branch(goal, fits, ()) if inside else Branch(goal, None, [way]))

    def sized(self, size: Value, limit: int, place: Span) -> None:
        """Record that a varbit of a symbolic size was fixed, with the other kinds of sizes."""
        if not isinstance(size, Symbol):
            return
        odd, bits = size.term & 7 != 0, size.term
        kinds = {
            "empty": bits == 0,
            "odd": odd,
            "too long": z3.UGT(bits, limit),
            "some": z3.And(bits != 0, z3.ULE(bits, limit), z3.Not(odd)),
        }
        taken = "odd" if size % 8 else "too long" if size > limit else "some" if size else "empty"
        goals: dict[str, Goal] = {kind: ("size", place, kind) for kind in kinds}
        self.cover(goals[taken])
        ways = [Way(goals[k], partial(_same, one)) for k, one in kinds.items() if k != taken]
        self.step(Branch(goals[taken], bits == int(size), ways))

    def needs(self, data: bytes, end: int, place: Span) -> None:
        """Record that a parser needed the packet to have `end` bits, before it looks."""
        if (front := self._front_of(data)) is None or self.packet is None:
            return
        size, length = (end + 7) // 8 - front, self.packet[1]
        if size > MOST_LENGTH or (front and size <= 0):
            return
        long, short = ("length", place, "long"), ("length", place, "short")
        enough = len(data) - front >= size
        holds = z3.UGE(length, size) if enough else z3.ULT(length, size)
        other = z3.ULT(length, size) if enough else z3.UGE(length, size)
        goal, opposite = (long, short) if enough else (short, long)
        self.cover(goal)
        self.step(Branch(goal, holds, [Way(opposite, lambda: other, size=size - enough)]))

    def _front_of(self, data: bytes) -> int | None:
        """Return the bytes in front of the packet from the port; None where it is another one."""
        if self.packet is not None and self.packet[0] is data:
            return 0
        return self._fronted[1] if self._fronted[0] is data else None

    # -- packets made in the switch ---------------------------------------------------------------

    def put_in_front(self, front: Sequence[Piece], data: bytes, whole: bytes) -> None:
        """Give bytes with a header in front the terms of both."""
        known = self.bits.get(data)
        if known is not None or any(piece is not None for _, piece in front):
            rest = [(8 * len(data), None)] if known is None else known.pieces
            self.bits[whole] = PacketBits([*front, *rest])
        if (before := self._front_of(data)) is not None:
            self._fronted = (whole, before + len(whole) - len(data))

    def emitted(self, packet: Any, pieces: list[Any]) -> None:
        self._emitted.setdefault(id(packet), (packet, []))[1].extend(pieces)

    def deparsed(self, packet: Any, data: bytes) -> None:
        """Give the bytes that a deparser made their terms, payload included."""
        _, pieces = self._emitted.pop(id(packet), (None, []))
        known = self.bits.get(packet.data)
        left = packet.bits - packet.position
        if known is not None and left:
            pieces = [*pieces, *known.slice(packet.position, left)]
        if any(piece is not None for _, piece in pieces):
            self.bits[data] = PacketBits(pieces)

    # -- tables -----------------------------------------------------------------------------------

    def look_up(
        self, table: MatchTable, values: tuple[Value, ...], keys: Sequence[Type],
        simple: Sequence[int] = (), asked: bool = False,
    ) -> list[Other]:  # fmt: skip
        """Decide what a lookup will find, and see to it that it does.

        simple: the actions whose effects can be merged. asked: the program asks whether the table
        was hit. Returns what the lookup might have found besides, with these actions, and the
        conditions of that."""
        name, plain = table.table.name, tuple(int(v) for v in values)
        found = table.lookup(plain) if table.fields else None
        ours = self._entries.setdefault(name, [])
        own = next((pair for pair in ours if pair[0] is found), None)
        self._given(table, values, keys, found if own is None else None)
        if own is not None:
            self._again(table, own, values, keys)
        elif found is None:
            return self._choose(table, values, plain, keys, simple, asked)
        return []

    def _again(
        self, table: MatchTable, own: tuple[Entry, tuple[Value, ...]], values: tuple[Value, ...],
        keys: Sequence[Type],
    ) -> None:  # fmt: skip
        """Record that a key hit an entry which an earlier lookup has made."""
        entry, first = own
        same = equal(keys, values, first)
        target = table.resolve(entry.action)
        goal = _outcome(table, target.index)
        self._decided(table, values, goal)
        ways = [] if same is None else [Way(None, lambda: z3.Not(same))]
        self.step(Branch(goal, same, ways))

    def _given(
        self,
        table: MatchTable,
        values: tuple[Value, ...],
        keys: Sequence[Type],
        found: Entry | None,
    ) -> None:
        """Record which of the source's entries a key hit, and aim at the others."""
        ours = {id(entry) for entry, _ in self._entries[table.table.name]}
        if found is not None:
            goal = _outcome(table, table.resolve(found.action).index)
            self._decided(table, values, goal)
        if not is_symbolic(*values):
            return
        ranked = by_rank(table, [e for e in table.entries() if id(e) not in ours])
        if not ranked:
            return
        if len(ranked) > MANY_ENTRIES:
            self._given_many(table, values, keys, found, ranked)
            return
        conditions = [matched(table.fields, e.matches, values, keys) for e in ranked]
        ways = []
        for i, entry in enumerate(ranked[:TRIED_ENTRIES]):
            if entry is not found and conditions[i] is not None:
                goal = _outcome(table, table.resolve(entry.action).index)
                ways.append(Way(goal, first_of(conditions, i)))
        if found is not None:
            index = next(i for i, entry in enumerate(ranked) if entry is found)
            ways.append(Way(_outcome(table, None), first_of(conditions, len(conditions))))
            self.step(Branch(goal, first_of(conditions, index)(), ways))
        else:
            holds = first_of(conditions, len(conditions))()
            self.step(Branch(None, None if z3.is_true(holds) else holds, ways))

    def _given_many(
        self, table: MatchTable, values: tuple[Value, ...], keys: Sequence[Type],
        found: Entry | None, ranked: Sequence[Entry],
    ) -> None:  # fmt: skip
        """Record what a key hit in a large table, of which only this key is known; aim at some of
        the other entries, whatever those before them match."""
        ways = []
        for entry in ranked[:: len(ranked) // TRIED_ENTRIES + 1]:
            condition = matched(table.fields, entry.matches, values, keys)
            if entry is not found and condition is not None:
                goal = _outcome(table, table.resolve(entry.action).index)
                ways.append(Way(goal, partial(_same, condition)))
        same = equal(keys, values, tuple(int(v) for v in values))
        self.step(Branch(None, same, ways))

    def _choose(
        self, table: MatchTable, values: tuple[Value, ...], plain: tuple[int, ...],
        keys: Sequence[Type], simple: Sequence[int], asked: bool,
    ) -> list[Other]:  # fmt: skip
        number = len(self.run.inputs.choices)
        missed = self._missed.setdefault(table.table.name, set())
        options = choices(table, missed=plain in missed, every=asked and self.fixed)
        if missed or table.table.name in self.run.made.defaults:
            options = [option for option in options if option.kind != "default"]
        chosen = self.inputs.choices.get(number)
        if chosen not in options:
            chosen = self._unasked([(option, _goal(table, option)) for option in options])
        if chosen.kind == "hit" and not self._enter(table, number, chosen, values, plain):
            chosen = Choice("miss")
        if chosen.kind == "default":
            data = self._data(table, number, chosen.action)
            table.set_default(data)
            self.run.made.defaults[table.table.name] = table, data
        if chosen.kind == "miss":
            missed.add(plain)
        self.run.inputs.choices[number] = chosen
        goal = _goal(table, chosen)
        self._took(goal)
        self._decided(table, values, goal)
        ways = [
            Way(_goal(table, option), choice=(number, option))
            for option in options
            if option != chosen
        ]
        self.step(Branch(goal, None, ways))
        for entry, first in self._entries[table.table.name]:
            same = equal(keys, values, first)
            if entry.matches and same is not None and first is not values:
                self.step(Branch(None, z3.Not(same), [Way(None, partial(_same, same))]))
        return self._others(table, number, options, chosen, simple)

    def _unasked(self, options: Sequence[tuple[Choice, Goal]]) -> Choice:
        """Make a choice that nobody has made: mostly what has led to the most so far, now and then
        what was taken least."""
        least = min(options, key=lambda pair: self.counts[pair[1]])
        total = sum(self.counts[goal] for _, goal in options)
        if not self.counts[least[1]] or total % 3 == 0:
            return least[0]
        return max(options, key=lambda pair: self.gains[pair[1]] / self.counts[pair[1]])[0]

    def _took(self, goal: Goal) -> None:
        self.counts[goal] += 1
        self._taken.append(goal)

    def end(self, gain: int) -> None:
        """End the run; gain: how much it has covered."""
        for goal in self._taken:
            self.gains[goal] += gain

    def _others(
        self, table: MatchTable, number: int, options: Sequence[Choice], chosen: Choice,
        simple: Sequence[int],
    ) -> list[Other]:  # fmt: skip
        """Return the other options whose effects can be merged with the chosen one's. A variable
        says which it is, by the numbers of `number_of`."""
        default = table.default.index if isinstance(table.default, ActionData) else -1
        single = default not in simple or chosen.kind == "hit" and chosen.action not in simple
        if single or self.fixed:
            return []
        selector, found = variable(f"c{number}", 16), []
        for option in options:
            action = default if option.kind == "miss" else option.action
            if option != chosen and action in simple:
                data = table.default if option.kind == "miss" else self._data(table, number, action)
                found.append((selector == number_of(option), option.kind == "hit", data))
        if found:
            here = selector == number_of(chosen)
            self.step(Branch(None, z3.Or(here, *(condition for condition, _, _ in found))))
        return found

    def _enter(
        self, table: MatchTable, number: int, chosen: Choice, values: tuple[Value, ...],
        plain: tuple[int, ...],
    ) -> bool:  # fmt: skip
        """Insert an entry for a key; return False where the table takes none."""
        matches = tuple(exactly(f, v) for f, v in zip(table.fields, plain, strict=True))
        action: Any = self._data(table, number, chosen.action)
        data = action
        own = self._entries[table.table.name]
        try:
            if table.profile is not None:
                wanted = table.table.actions[chosen.action].action.name
                index = table.profile.actions.names.index(wanted)
                member = len(table.profile.members)  # as simple_switch_CLI numbers them
                table.profile.add_member(member, ActionData(index, action.args))
                action = MemberRef(member)
            entry = Entry(matches, action, priority=len(own) + 1 if table.with_priority else 0)
            table.insert(entry)
        except TableError:
            return False
        own.append((entry, values))
        self.run.made.entries.append((table, entry, data))
        return True

    def _data(self, table: MatchTable, number: int, action: int) -> ActionData:
        """Return an action with variables as its data."""
        args = []
        for i, param in enumerate(table.table.actions[action].action.params):
            args.append(self.variable(f"e{number}.{action}.{i}", param.type))
            name = table.table.actions[action].action.name.rpartition(".")[2]
            self.data_names[number, action, i] = f"{name}'s {param.name}"
        return ActionData(action, tuple(args))

    def variable(self, name: str, t: Type) -> Symbol:
        value = self.inputs.values.get(name, 0)
        self.run.inputs.values[name] = value
        return Symbol(value, variable(name, 0 if isinstance(t, Bool) else getattr(t, "width", 32)))

    def _decided(self, table: MatchTable, values: tuple[Value, ...], goal: Goal) -> None:
        if goal[2].startswith("default "):
            self.cover(_outcome(table, None))
        self.cover(goal)
        names = [_short(table, i) for i in range(len(table.table.actions))]
        kind, _, action = goal[2].partition(" ")
        rank = names.index(action) if action else len(names)
        text = f"{table.table.name}: {goal[2]}"
        made = Decision(table.table.span, text, rank + 2 * len(names) * (kind == "default"))
        self.run.decisions.append(made)

    def in_set(self, value_set: ParserValueSet, values: tuple[Value, ...], place: Span) -> None:
        """Decide whether a key is a member of a value set."""
        plain = tuple(int(v) for v in values)
        if value_set.contains(plain):
            return
        number = len(self.run.inputs.choices)
        options = [Choice("miss")]
        if len(value_set.members) < value_set.size:
            options.append(Choice("hit"))
        goals: list[Goal] = [("set", place, option.kind) for option in options]
        chosen = self.inputs.choices.get(number)
        if chosen not in options:
            chosen = self._unasked(list(zip(options, goals, strict=True)))
        if chosen.kind == "hit":
            member = tuple(exactly(f, v) for f, v in zip(value_set.fields, plain, strict=True))
            value_set.replace([*value_set.members, member])
            self.run.made.members.append((value_set, plain))
        self.run.inputs.choices[number] = chosen
        self._took(("set", place, chosen.kind))
        self.cover(("set", place, chosen.kind))
        ways = [
            Way(goal, choice=(number, option))
            for goal, option in zip(goals, options, strict=True) if option != chosen
        ]  # fmt: skip
        self.step(Branch(("set", place, chosen.kind), None, ways))

    # -- registers, groups and sessions -----------------------------------------------------------

    def content(self, register: Register, at: int, written: bool) -> None:
        """Let a cell that packets have not written yet hold anything, if it is read."""
        cell = register.name, at
        first = self.contents and cell not in self._found_cells
        self._found_cells.add(cell)
        if first and not written:
            name = f"r.{register.name}[{at}]"
            value = register.wrap(self.inputs.values.get(name, register.initial))
            self.run.inputs.values[name] = value
            self.cells[cell] = Symbol(value, variable(name, register.width))
            if value != register.initial:
                register.write(at, value)
                self.run.made.cells.append((register, at, value))

    def group(self, number: Value, place: Span) -> None:
        """See to it that a multicast group exists: instance 1 leaves by the port that the packet
        came from, instance 2 by another."""
        self._asked("multicast to group", number, place)
        number = int(number)
        if number and number not in self.state.multicast:
            port = self.port
            ports = (port, 1 if port != 1 else 2)
            self.switch.multicast(number, [(p, i) for i, p in enumerate(ports, 1)])
            self.run.made.groups[number] = ports

    def _asked(self, what: str, number: Value, place: Span) -> None:
        given = number.term if isinstance(number, Symbol) else None
        text = f"{what} " + ("{}" if given is not None else str(int(number)))
        self.run.decisions.append(Decision(place, text, term=given))

    def comes_back(self, port: Value) -> bool:
        """Note that a packet was resubmitted or recirculated; return whether to follow it: not if
        action data chose the port, since entries could send it round for ever."""
        term = port.term if isinstance(port, Symbol) else None
        text = "comes back" + (" if {} is a recirculation port" if term is not None else "")
        self.run.decisions.append(Decision(NOWHERE, text, term=term))
        self.followed &= term is None
        return term is None

    def session(self, number: Value, place: Span) -> None:
        """See to it that a clone session exists."""
        self._asked("clone to session", number, place)
        number = int(number)
        if number and number not in self.state.clone_sessions:
            self.switch.clone_session(number, [3])
            self.run.made.sessions[number] = 3


def choices(table: MatchTable, missed: bool = False, every: bool = False) -> list[Choice]:
    """Return what a lookup may find where no entry matches. missed: an earlier one for this key
    found nothing, so that no entry may be added. every: default actions that entries may have, too,
    of which only a miss tells the difference."""
    actions, made = table.table.actions, []
    own = set(table.actions.for_entries)
    if table.fields and not table.table.const_entries and not missed:
        made = [Choice("hit", i) for i, a in enumerate(actions) if a.action.name in own]
    made.append(Choice("miss"))
    if not table.table.const_default and table.profile is None and not missed:
        default = table.table.default.index
        for i, a in enumerate(actions):
            barred = any(note.name in ("tableonly", "groupaction") for note in a.annotations)
            if i != default and not barred and (every or Choice("hit", i) not in made):
                made.append(Choice("default", i))
    return made


def _as_condition(one: Any) -> Term | None:
    """Return the term of a condition, None for what never holds."""
    return one if isinstance(one, z3.ExprRef) else z3.BoolVal(True) if one else None


def _goal(table: MatchTable, choice: Choice) -> Goal:
    if choice.kind == "default":
        return "table", table.table.span, f"default {_short(table, choice.action)}"
    return _outcome(table, choice.action if choice.kind == "hit" else None)


def _outcome(table: MatchTable, action: int | None) -> Goal:
    return "table", table.table.span, MISS if action is None else f"hit {_short(table, action)}"


def _short(table: MatchTable, action: int) -> str:
    return table.table.actions[action].action.name.rpartition(".")[2]


def _same(one: Term) -> Term:
    return one
