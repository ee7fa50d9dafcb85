"""Random table entries and packets of a program that reach deep into it.

Packets get the values that the program compares them with (`goals`), or others of the same width.
A packet that reaches a state, an action of a table or a statement for the first time is kept, and
changed further. Entries match what packets have been looked up with, so that later packets hit
them and reach what lies behind.
"""

from __future__ import annotations

import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradplane.differ.cells import Cells, cells_of_data
from gradplane.differ.goals import Goal, Places, goals, numbers
from gradplane.switch.interp import trace_events
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits
from gradplane.switch.ir.walk import blocks, statements
from gradplane.switch.p4runtime.p4info import is_hidden
from gradplane.switch.runtime.action_lists import ActionList, annotated
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry, EntryAction, GroupRef, MemberRef
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_passes import ENDLESS
from gradplane.switch.runtime.profiles import Weighted
from gradplane.switch.switch import Switch

_LENGTHS = (60, 100, 200)
_IPV4_BITS, _CHECKSUM_AT = 160, 80
_TRIES = 10  # packets that are made for each that is wanted
_NEWEST = 8  # kept packets that are changed rather than others
_OTHER_PORT = 0.3
_ASSERTIONS = ("assert failed", "assume failed")
_LOOP = "a loop ran more than"
_PASSES = 200  # of a packet and its clones, above which they are taken to go round for ever
_ROUNDS, _LOOKED_AT = 4, 40  # times that entries are made; packets before each
Events = list[trace_events.TraceEvent]
_Given = tuple[int, bytes]  # port and packet
_LookUp = tuple[dict[str, int], _Given]  # keys that miss, and what was looked up


class Inputs:
    """Entries and packets for a program, the same for the same seed."""

    def __init__(self, program: ir.Program, seed: int) -> None:
        self._rng = random.Random(seed)
        self._program, self._places, self._cells = program, Places(program), Cells(program)
        self._goals: list[Goal] = [
            goal for goal in goals(program) if any(self._places.may_have(expr) for expr, _ in goal)
        ]
        self._aims = [0] * len(self._goals)  # how often each was aimed at
        known = [pair for goal in goals(program) for pair in numbers(goal)]
        self._values = Values(self._rng, known)
        self._kept = [(self._port(), self._rng.randbytes(length)) for length in _LENGTHS]
        self._seen: set[object] = set()

    # -- entries --------------------------------------------------------------------------------

    def populate(self, switch: Switch, entries: int = 12) -> None:
        """Insert entries into every table that takes them, and what they refer to.

        Two of three entries of a table match what packets look up in it, the others are any.
        """
        guide = Switch(self._program, engine="interpreter")
        made = RandomEntries((guide, switch), self._rng, self._values)
        made.prepare(self._program)
        for _ in range(_ROUNDS if made.tables else 0):
            looked_up: dict[str, list[_LookUp]] = defaultdict(list)
            for port, packet in self.packets(guide, _LOOKED_AT):
                for event in guide.trace(port, packet).events:
                    if isinstance(event, trace_events.Applied) and not event.hit:
                        looked_up[event.table].append((event.keys, (port, packet)))
            for name in made.tables:
                self._insert(made, name, looked_up[name], entries // _ROUNDS)

    def _insert(self, made: RandomEntries, name: str, looked_up: list[_LookUp], count: int) -> None:
        matching = self._rng.sample(looked_up, min(len(looked_up), count - count // 3))
        for keys, packet in matching:
            made.insert(name, keys)
            self._kept.append(packet)
        for _ in range(count - len(matching)):
            made.insert(name)

    # -- packets --------------------------------------------------------------------------------

    def packets(self, switch: Switch, count: int) -> Iterator[tuple[int, bytes]]:
        """Yield ports and packets; `switch`, which has the entries, is run to see how far they go.

        Its passes are limited. Packets that go round for ever, in a parser or a loop too, are left
        out, for BMv2 has no limit that ends them, and packets for which an assertion fails or that
        use a cell beyond its array's end, which ends its process. Where most packets are such,
        there are fewer than `count`.
        """
        left = count
        switch.limit_passes(_PASSES)
        for _ in range(_TRIES * count):
            port, packet = self._rng.choice(self._kept[-_NEWEST:] + self._kept)
            if self._rng.random() < _OTHER_PORT:
                port = self._port()
            packet = self._changed(switch, port, packet)
            events = switch.trace(port, packet).events
            if _ends_bmv2(events) or self._cells.left(events):
                continue
            reached = _reached(events)
            if not reached <= self._seen:
                self._seen |= reached
                self._kept.append((port, packet))
            yield port, packet
            if not (left := left - 1):
                return

    def _port(self) -> int:
        """Return a port that a packet comes in by, now and then one that the program names."""
        return self._rng.choice(PORTS) if self._rng.random() < 0.9 else self._values.value(9)

    def _changed(self, switch: Switch, port: int, packet: bytes) -> bytes:
        """Return a packet with other values in some places that the program looks at."""
        rng = self._rng
        for _ in range(rng.randrange(4)):
            events = switch.trace(port, packet).events
            if rng.random() < 0.03:
                return packet[: rng.randrange(14, max(15, len(packet) + 1))]
            if _is_short(events) and rng.random() < 0.5:
                packet += rng.randbytes(rng.choice(_LENGTHS))
            aim = bool(self._goals) and rng.random() < 0.6
            change = self._aimed if aim else self._with_value
            packet = change(packet, events)
        return self._with_checksums(switch, port, packet) if rng.random() < 0.9 else packet

    def _aimed(self, packet: bytes, events: Events) -> bytes:
        """Return the packet with the values of a goal, rather of one that was seldom aimed at."""
        few = self._rng.choices(range(len(self._goals)), k=6)
        for index in sorted(few, key=self._aims.__getitem__):
            changed = self._places.aimed(packet, events, self._goals[index], self._rng)
            if changed != packet:
                self._aims[index] += 1
                return changed
        return packet

    def _with_value(self, packet: bytes, events: Events) -> bytes:
        """Return the packet with another value in a field, rather of one of the last headers."""
        found = [e for e in events if isinstance(e, trace_events.Extracted)]
        if not found:
            return packet
        fields = self._places.fields(self._rng.choice(found[-2:] + found))
        if not fields:
            return packet
        place, rng = self._rng.choice(fields), self._rng
        known = rng.random() < 0.8
        value = self._values.port(place.width) if known else rng.getrandbits(place.width)
        return place.write(packet, value, (1 << place.width) - 1)

    def _with_checksums(self, switch: Switch, port: int, packet: bytes) -> bytes:
        """Return the packet with right checksums in headers that are laid out as IPv4's is."""
        for event in switch.trace(port, packet).events:
            if isinstance(event, trace_events.Extracted) and event.bits == _IPV4_BITS:
                starts = {place.start - event.at for place in self._places.fields(event)}
                if _CHECKSUM_AT in starts and event.at % 8 == 0:
                    packet = _with_checksum(packet, event.at // 8)
        return packet


def _with_checksum(packet: bytes, start: int) -> bytes:
    """Return the packet with the Internet checksum of the IPv4 header at byte `start`."""
    place = start + _CHECKSUM_AT // 8
    words = struct.unpack_from("!10H", packet[:place] + b"\0\0" + packet[place + 2 :], start)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:place] + struct.pack("!H", ~total & 0xFFFF) + packet[place + 2 :]


def _ends_bmv2(events: Events) -> bool:
    """Return whether a packet was dropped because it came back too often, or by an assertion, or
    went round in a parser or a loop, which BMv2 does not end."""
    if any(isinstance(e, trace_events.Rejected) and e.error == "ParserTimeout" for e in events):
        return True
    reasons = [event.reason for event in events if isinstance(event, trace_events.Dropped)]
    return any(
        reason in ENDLESS or reason.endswith(_ASSERTIONS) or _LOOP in reason for reason in reasons
    )


def _is_short(events: Events) -> bool:
    """Return whether a packet ended before its headers did."""
    short = (e for e in events if isinstance(e, trace_events.Rejected))
    return any(event.error == "PacketTooShort" for event in short)


def _reached(events: Events) -> set[object]:
    """Return the parser states, table actions and places in the source of a packet."""
    found: set[object] = set()
    for event in events:
        found.add(event.span)
        if isinstance(event, trace_events.StateEntered):
            found.add(event.state)
        elif isinstance(event, trace_events.Applied):
            found.add((event.table, event.action, event.hit))
    return found


# Numbers by their width, so that entries, packets and the program meet in the same ones


PORTS = range(1, 9)
_MOST, _NEW = 40, 3  # numbers of a width; random ones among them


class Values:
    """Random values that occur in the program, or did before."""

    def __init__(self, rng: random.Random, known: Iterable[tuple[int, int]]) -> None:
        """known: width and value of the program's numbers."""
        self._rng = rng
        self._known: dict[int, list[int]] = defaultdict(list)
        for width, value in known:
            if value not in self._known[width]:
                self._known[width].append(value)

    def value(self, width: int) -> int:
        """Return a value that occurs elsewhere in program or entries, or sometimes any other."""
        rng, known = self._rng, self._known[width]
        if not known or len(known) < _NEW or (len(known) < _MOST and rng.random() < 0.05):
            known.append(rng.choice((rng.getrandbits(width), rng.randrange(9) % (1 << width))))
        return rng.choice(known)

    def port(self, width: int) -> int:
        """Return a port's number where the width is a port's, else a value."""
        return self._rng.choice(PORTS) if width == 9 else self.value(width)

    def argument(self, t: object) -> int:
        """Return a value of a parameter's type."""
        if not isinstance(t, Bits):
            return self._rng.randrange(2)
        value = self.port(t.width)
        return value - (1 << t.width) if t.signed and value >> (t.width - 1) else value


# Random entries, members and groups of a program, in several switches alike


_MEMBERS, _GROUPS = range(1, 5), range(1, 3)


class RandomEntries:
    """Inserts into the tables of `switches`, which run one program, the same everywhere."""

    def __init__(self, switches: Sequence[Switch], rng: random.Random, values: Values) -> None:
        self._switches, self._rng, self._values = switches, rng, values
        self._used: Counter[tuple[str, int]] = Counter()  # how often each action was chosen
        self._cells = cells_of_data(switches[0].program)
        self.tables = {
            name: [switch.state.tables[name] for switch in switches]
            for name, table in switches[0].state.tables.items()
            if not table.table.entries and _choices(table.actions)
        }

    def prepare(self, program: ir.Program) -> None:
        """Set multicast groups, the program's clone sessions, members and groups of members."""
        groups = {number: sorted(self._rng.sample(PORTS, number)) for number in range(1, 4)}
        sessions = {number: [self._rng.choice(PORTS)] for number in sorted(_sessions(program))}
        for switch in self._switches:
            for number, ports in groups.items():
                switch.multicast(number, ports)
            for number, ports in sessions.items():
                if 0 < number < switch.clone_sessions:
                    switch.clone_session(number, ports)
        for name in self._switches[0].state.profiles:
            self._fill(name)

    def _fill(self, name: str) -> None:
        profiles = [switch.state.profiles[name] for switch in self._switches]
        if profiles[0].mixed:
            return
        for member in _MEMBERS:
            action = self._action(profiles[0].actions)
            for profile in profiles:
                profile.add_member(member, action)
        for group in _GROUPS if profiles[0].has_groups else ():
            members = self._rng.sample(_MEMBERS, group + 1)
            for profile in profiles:
                profile.add_group(group, [Weighted(member) for member in members])

    def insert(self, name: str, keys: Mapping[str, int] | None = None) -> None:
        """Insert an entry that a lookup with these keys hits, or any."""
        tables = self.tables[name]
        fields = tables[0].fields
        matches = tuple(self._match(f, None if keys is None else keys[f.name]) for f in fields)
        priority = self._rng.randrange(1, 1000) if tables[0].with_priority else 0
        action = self._target(tables[0])
        for table in tables:
            try:
                table.insert(Entry(matches, action, priority))
            except TableError:
                return  # there already, or an action that is for the default only

    def _match(self, field: KeyField, key: int | None) -> Match:
        rng = self._rng
        value = self._values.port(field.width) if key is None else key & field.full
        if field.kind == "lpm":
            length = rng.choice((field.width, field.width, rng.randrange(1, field.width + 1)))
            return value & field.mask(length), length
        if field.kind == "ternary":
            mask = rng.choice((field.full, field.full, rng.getrandbits(field.width) | 1))
            return value & mask, mask
        if field.kind == "range":
            other = rng.choice((value, self._values.value(field.width)))
            low, high = sorted((value, other), key=field.order)
            return low, high
        if field.kind == "optional" and rng.random() < 0.2:
            return None
        return (value,)

    def _target(self, table: MatchTable) -> EntryAction:
        if table.profile is None:
            return self._action(table.actions)
        if table.profile.has_groups and self._rng.random() < 0.7:
            return GroupRef(self._rng.choice(_GROUPS))
        return MemberRef(self._rng.choice(_MEMBERS))

    def _action(self, actions: ActionList) -> ActionData:
        known = _choices(actions)
        self._rng.shuffle(known)
        index = min(known, key=lambda number: self._used[actions.owner, number])
        self._used[actions.owner, index] += 1
        params = actions.choices[index].action.params
        return ActionData(index, tuple(map(self._argument, params)))

    def _argument(self, param: ir.Var) -> int:
        cells = self._cells.get(param.id)
        return self._rng.randrange(cells) if cells else self._values.argument(param.type)


def _choices(actions: ActionList) -> list[int]:
    """Return the numbers of the actions that a controller can give to an entry."""
    return [
        number
        for number, choice in enumerate(actions.choices)
        if not (is_hidden(choice.action.annotations) or annotated(choice, "defaultonly"))
    ]


def _sessions(program: ir.Program) -> set[int]:
    """Return the clone sessions that the program names by a number."""
    calls = [s for _, block in blocks(program.package) for s in statements(block)]
    clones = [s for s in calls if isinstance(s, ir.CallExtern) and s.name.startswith("clone")]
    return {int(a.value) for s in clones for a in s.args[1:2] if isinstance(a, ir.Const)}
