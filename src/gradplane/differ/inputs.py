"""Random table entries and packets of a program that reach deep into it.

Constants of the parser's selects and some random numbers, by their width, are the values that
entries match and that packets have in their fields, so that lookups hit. A packet that reaches a
parser state or a table's action for the first time is kept, and changed further.
"""

from __future__ import annotations

import random
import struct
from collections import defaultdict
from collections.abc import Iterator

from gradplane.switch.interp import trace_events
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.statement_walk import blocks, statements
from gradplane.switch.ir.types import Bits, Header
from gradplane.switch.p4runtime.p4info import is_hidden
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, Entry
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_passes import ENDLESS
from gradplane.switch.source import Span
from gradplane.switch.switch import Switch

PORTS = range(1, 9)
_LENGTHS = (60, 100, 200)
_IPV4_BITS, _CHECKSUM_AT = 160, 80
_TRIES = 10  # packets that are made for each that is wanted
_NEW_VALUES = 3  # random numbers for each width, beside the program's


class Inputs:
    """Entries and packets for a program, the same for the same seed."""

    def __init__(self, program: ir.Program, seed: int) -> None:
        self._rng = random.Random(seed)
        self._program = program
        self._values: dict[int, list[int]] = defaultdict(list)
        self._layouts: dict[Span, list[int]] = {}
        for _, block in blocks(program.package):
            if isinstance(block, ir.Parser):
                self._learn(block)

    def _learn(self, parser: ir.Parser) -> None:
        for statement in statements(parser):
            if isinstance(statement, ir.Extract) and isinstance(statement.target.type, Header):
                fields = statement.target.type.fields
                self._layouts[statement.span] = [getattr(f.type, "width", 1) for f in fields]
        for state in parser.states.values():
            for case in state.cases:
                for key, match in zip(state.select, case.matches, strict=False):
                    self._learn_match(key, match)

    def _learn_match(self, key: ir.Expr, match: ir.Match) -> None:
        if not isinstance(match, ir.MatchValue | ir.MatchMask):
            return
        if isinstance(match.value, ir.Const) and isinstance(key.type, Bits):
            width = key.type.width
            self._values[width].append(int(match.value.value) & ((1 << width) - 1))

    # -- values ---------------------------------------------------------------------------------

    def _value(self, width: int) -> int:
        """Return a value that occurs elsewhere in program or entries, or sometimes any other."""
        rng, known = self._rng, self._values[width]
        if not known or len(known) < _NEW_VALUES or (len(known) < 40 and rng.random() < 0.05):
            known.append(rng.choice((rng.getrandbits(width), rng.randrange(9) % (1 << width))))
        return rng.choice(known)

    def _port(self, width: int) -> int:
        return self._rng.choice(PORTS) if width == 9 else self._value(width)

    # -- entries --------------------------------------------------------------------------------

    def populate(self, switch: Switch, entries: int = 8) -> None:
        """Insert random entries into every table that takes them, and set multicast groups."""
        for table in switch.state.tables.values():
            hidden = all(is_hidden(a.action.annotations) for a in table.table.actions)
            if table.profile is None and not table.table.entries and not hidden:
                for _ in range(entries):
                    self._insert(table)
        for group in range(1, 4):
            switch.multicast(group, sorted(self._rng.sample(PORTS, group)))

    def _insert(self, table: MatchTable) -> None:
        matches = tuple(self._match(field) for field in table.fields)
        priority = self._rng.randrange(1, 1000) if table.with_priority else 0
        try:
            table.insert(Entry(matches, self._action(table), priority))
        except TableError:
            return  # there already, or an action that is for the default only

    def _match(self, field: KeyField) -> Match:
        value, rng = self._port(field.width), self._rng
        if field.kind == "lpm":
            length = rng.choice((field.width, rng.randrange(1, field.width + 1)))
            return value & field.mask(length), length
        if field.kind == "ternary":
            mask = rng.choice((field.full, rng.getrandbits(field.width) | 1))
            return value & mask, mask
        if field.kind == "range":
            low, high = sorted((value, self._value(field.width)), key=field.order)
            return low, high
        return (value,)

    def _action(self, table: MatchTable) -> ActionData:
        actions = table.table.actions
        known = [i for i, a in enumerate(actions) if not is_hidden(a.action.annotations)]
        index = self._rng.choice(known)
        params = table.table.actions[index].action.params
        return ActionData(index, tuple(self._argument(p.type) for p in params))

    def _argument(self, t: object) -> int:
        if not isinstance(t, Bits):
            return self._rng.randrange(2)
        value = self._port(t.width)
        return value - (1 << t.width) if t.signed and value >> (t.width - 1) else value

    # -- packets --------------------------------------------------------------------------------

    def packets(self, switch: Switch, count: int) -> Iterator[tuple[int, bytes]]:
        """Yield ports and packets; `switch` has the entries, and is run to see how far they go.

        Packets that go round for ever are left out: BMv2 has no limit that ends them. Where most
        packets do, there are fewer than `count`.
        """
        kept = [self._rng.randbytes(length) for length in _LENGTHS]
        seen: set[object] = set()
        left = count
        for _ in range(_TRIES * count):
            port = self._rng.choice(PORTS)
            packet = self._changed(switch, port, self._rng.choice(kept))
            events = switch.trace(port, packet).events
            if _is_endless(events):
                continue
            reached = _reached(events)
            if not reached <= seen:
                seen |= reached
                kept.append(packet)
            yield port, packet
            if not (left := left - 1):
                return

    def _changed(self, switch: Switch, port: int, packet: bytes) -> bytes:
        """Return a packet with other values in some fields of the headers that it has."""
        for _ in range(self._rng.randrange(1, 6)):
            events = switch.trace(port, packet).events
            found = [e for e in events if isinstance(e, trace_events.Extracted)]
            if not found or self._rng.random() < 0.03:
                return packet[: self._rng.randrange(14, len(packet) + 1)]
            packet = self._with_value(packet, self._rng.choice(found[-2:] + found))
        return self._with_checksums(switch, port, packet) if self._rng.random() < 0.9 else packet

    def _with_checksums(self, switch: Switch, port: int, packet: bytes) -> bytes:
        """Return the packet with right checksums in headers that are laid out as IPv4's is."""
        for event in switch.trace(port, packet).events:
            if isinstance(event, trace_events.Extracted) and event.bits == _IPV4_BITS:
                sums = [sum(self._layouts[event.span][:n]) for n in range(16)]
                if _CHECKSUM_AT in sums and event.at % 8 == 0:
                    packet = _with_checksum(packet, event.at // 8)
        return packet

    def _with_value(self, packet: bytes, header: trace_events.Extracted) -> bytes:
        widths = self._layouts.get(header.span)
        if not widths:
            return packet
        index = self._rng.randrange(len(widths))
        start = header.at + sum(widths[:index])
        shift = len(packet) * 8 - start - widths[index]
        if shift < 0:
            return packet
        mask = ((1 << widths[index]) - 1) << shift
        number = int.from_bytes(packet, "big") & ~mask
        number |= self._port(widths[index]) << shift
        return number.to_bytes(len(packet), "big")


def _with_checksum(packet: bytes, start: int) -> bytes:
    """Return the packet with the Internet checksum of the IPv4 header at byte `start`."""
    place = start + _CHECKSUM_AT // 8
    words = struct.unpack_from("!10H", packet[:place] + b"\0\0" + packet[place + 2 :], start)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:place] + struct.pack("!H", ~total & 0xFFFF) + packet[place + 2 :]


def _is_endless(events: list[trace_events.TraceEvent]) -> bool:
    """Return whether a packet was dropped because it came back too often."""
    return any(isinstance(e, trace_events.Dropped) and e.reason in ENDLESS for e in events)


def _reached(events: list[trace_events.TraceEvent]) -> set[object]:
    """Return the parser states and table actions of a packet."""
    found: set[object] = set()
    for event in events:
        if isinstance(event, trace_events.StateEntered):
            found.add(event.state)
        elif isinstance(event, trace_events.Applied):
            found.add((event.table, event.action, event.hit))
    return found
