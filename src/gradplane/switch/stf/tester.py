"""Execution of the commands of an STF file on a switch.

A command that the switch refuses (a duplicate entry, an entry for a table whose entries are const)
is noted and skipped, as BMv2's runner does; a name that does not exist ends the test.

Beside the names that the switch accepts (the full control-plane name, or a suffix of whole parts),
BMv2's reader accepts any suffix that fits only one name; key fields have several spellings.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradplane._captures import CaptureError, ethernet_packets
from gradplane.switch.commands import CommandTarget, run_words
from gradplane.switch.control_handles import Table
from gradplane.switch.naming import resolve
from gradplane.switch.runtime.arrays import Counter
from gradplane.switch.runtime.control_errors import SwitchError, TableError
from gradplane.switch.runtime.control_messages import PacketIn
from gradplane.switch.runtime.entries import Count, Entry
from gradplane.switch.stf.stf_grammar import (
    Statement,
    StfError,
    absent,
    arguments,
    match_value,
    number,
    pairs,
)
from gradplane.switch.switch import Switch

PACKET_NS, WAIT_NS = 1_000_000, 1_000_000_000  # the time that a packet and a `wait` take
SIGNS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ELEMENT = re.compile(r"\$(\d+)")
_VALID = "$valid$"


class Clock:
    """The time of a test: it advances with packets and waits only, so that tests are repeatable."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Tester:
    """Runs statements one by one, each with the method named after its command.

    `expectations` holds the resulting packets.
    """

    def __init__(self, switch: Switch, clock: Clock, file: str) -> None:
        self.switch = switch
        self.clock = clock
        self.file = file
        self.expectations = Expectations(file)
        self.problems: list[str] = []  # counters with unexpected values
        self.refused: list[str] = []
        self._target = CommandTarget(switch)
        self._handles: dict[str, Entry] = {}

    def run(self, statement: Statement) -> None:
        """Run a statement; raise StfError if it cannot be run."""
        place = f"{self.file}:{statement.line}"
        try:
            getattr(self, statement.command)(statement.line, **statement.args)
        except TableError as error:
            self.refused.append(f"{place}: {error}")
        except (SwitchError, StfError) as error:
            raise StfError(f"{place}: {error}") from error

    # -- packets --------------------------------------------------------------------------------

    def packet(self, line: int, port: str, data: str) -> None:
        self.expectations.ports.add(int(port))
        self._pass_time(PACKET_NS)
        start = self.clock.now
        for at, packet in self._captured(data) or [(0, packet_bytes(data))]:
            self._pass_time(max(0, start + at - self.clock.now))
            self._sent(self.switch.process(int(port), packet))
        self._pass_time(0)

    def _captured(self, data: str) -> list[tuple[int, bytes]]:
        """Return the packets of @CAPTURE, looked for beside the test, and their times in ns from
        the first one on. Raises StfError."""
        if not data.startswith("@"):
            return []
        try:
            packets = ethernet_packets(Path(self.file).parent / data[1:].strip())
        except CaptureError as error:
            raise StfError(str(error)) from None
        return [(packet.time - packets[0].time, packet.data) for packet in packets]

    def _pass_time(self, duration: int) -> None:
        """Let nanoseconds pass; packets leave the switch's queues meanwhile, each at its time."""
        end = self.clock.now + duration
        while (at := self.switch.next_departure()) is not None and at <= end:
            self.clock.now = max(at, self.clock.now)
            self._sent(self.switch.poll())
        self.clock.now = end

    def finish(self) -> None:
        """End the test: packets that still wait in the switch's queues leave."""
        while (at := self.switch.next_departure()) is not None:
            self._pass_time(max(0, at - self.clock.now))

    def _sent(self, packets: Iterable[tuple[int, bytes]]) -> None:
        for out, packet in packets:
            self.expectations.sent(out, packet)
        for message in self.switch.messages():
            if isinstance(message, PacketIn) and self.switch.cpu_port is not None:
                self.expectations.sent(self.switch.cpu_port, message.packet)

    def expect(self, line: int, port: str, data: str, end: str) -> None:
        for _, packet in self._captured(data):
            self.expectations.expect(line, int(port), packet.hex(), whole=True)
        if not data.startswith("@"):
            self.expectations.expect(line, int(port), "".join(data.split()), bool(end))

    def no_packet(self, line: int) -> None:
        self.expectations.nothing = True

    def wait(self, line: int) -> None:
        self._pass_time(WAIT_NS)

    # -- tables ---------------------------------------------------------------------------------

    def add(
        self, line: int, table: str, priority: str, matches: str, action: str, args: str,
        handle: str,
    ) -> None:  # fmt: skip
        target = self._table(table)
        name, params = self._action(target, action, args)
        match = self._match(target, matches)
        entry = target.add(match, name, params, self._priority(target, priority))
        if handle:
            self._handles[handle.lstrip("$")] = entry

    def setdefault(self, line: int, table: str, action: str, args: str) -> None:
        target = self._table(table)
        target.set_default(*self._action(target, action, args))

    def remove(
        self, line: int, table: str, priority: str = "", handle: str = "", matches: str = ""
    ) -> None:
        if table.lower() == "all" and not (handle or matches):
            self._remove_all()
            return
        target = self._table(table)
        if handle:
            with self.switch.lock:
                self.switch.store.entries(target.state).delete(self._entry(handle).key)
        else:
            target.remove(self._match(target, matches), self._priority(target, priority))

    def _remove_all(self) -> None:
        for table in self.switch.state.tables:
            if not self.switch.state.tables[table].table.const_entries:
                self.switch.table(table).clear()

    def _table(self, name: str) -> Table:
        return self.switch.table(_named("table", name, self.switch.state.tables))

    @staticmethod
    def _action(table: Table, action: str, args: str) -> tuple[str, dict[str, Any]]:
        names = [choice.action.name for choice in table.state.table.actions]
        where = f"table {table.state.table.name}"
        params = {name: number(value) for name, value in arguments(args)}
        return _named("action", action, names, where), params

    @staticmethod
    def _match(table: Table, matches: str) -> dict[str, Any]:
        fields = {f.name: f for f in table.state.fields}
        match = {name: absent(field) for name, field in fields.items()}
        for name, value in pairs(matches):
            field = fields[_field_named(name, list(fields), f"table {table.state.table.name}")]
            match[field.name] = match_value(field, value)
        return match

    @staticmethod
    def _priority(table: Table, priority: str) -> int | None:
        """Convert a priority: the larger wins, the switch's start at 1 and those of STF at 0."""
        return int(priority or 0) + 1 if table.state.with_priority else None

    def _entry(self, handle: str) -> Entry:
        name = handle.lstrip("$")
        if name not in self._handles:
            known = ", ".join(self._handles) or "none"
            raise StfError(f"there is no entry handle {handle!r}; handles: {known}")
        return self._handles[name]

    # -- groups, with simple_switch_CLI's commands ----------------------------------------------

    def mirroring_add(self, line: int, session: str, port: str) -> None:
        self._command("mirroring_add", session, port)

    def mirroring_add_mc(self, line: int, session: str, group: str) -> None:
        self._command("mirroring_add_mc", session, group)

    def mirroring_get(self, line: int, session: str) -> None:
        self._command("mirroring_get", session)

    def mc_mgrp_create(self, line: int, group: str) -> None:
        self._command("mc_mgrp_create", group)

    def mc_node_create(self, line: int, rid: str, ports: str) -> None:
        self._command("mc_node_create", rid, *ports.split())

    def mc_node_associate(self, line: int, group: str, node: str) -> None:
        self._command("mc_node_associate", group, node)

    # -- registers and counters -----------------------------------------------------------------

    def register_read(self, line: int, name: str, index: str) -> None:
        self._command("register_read", self._register(name), *filter(None, [index]))

    def register_write(self, line: int, name: str, index: str, value: str) -> None:
        self._command("register_write", self._register(name), index, value)

    def register_reset(self, line: int, name: str) -> None:
        self._command("register_reset", self._register(name))

    def _register(self, name: str) -> str:
        return _named("register", name, self.switch.state.registers)

    def command_line(self, line: int, words: str) -> None:
        """Run one of simple_switch's commands that are not part of the format itself."""
        self._command(*words.split())

    def _command(self, *words: str) -> None:
        run_words(self._target, words)

    def check_counter(
        self, line: int, name: str, index: str, unit: str, sign: str, number: str
    ) -> None:
        packets, size = self._count(name, index)
        value = size if unit == "bytes" else packets
        if sign and not SIGNS[sign](value, _index(number)):
            what = f"counter {name}({index})" if index else f"counter {name}"
            self.problems.append(
                f"{self.file}:{line}: {what}: {unit or 'packets'} {sign} {number} does not hold: "
                f"it has {value}"
            )

    def _count(self, name: str, index: str) -> tuple[int, int]:
        """Return the packets and bytes of a counter's cell, or of an entry's direct one."""
        known = self.switch.store.names.cells("counter")
        found = known[_named("counter", name, known)]
        if isinstance(found, Counter):
            return self._cell(found, _index(index or "0"))
        count = self._direct(index, list(found.entries()))
        return count.packets, count.bytes

    @staticmethod
    def _cell(counter: Counter, index: int) -> tuple[int, int]:
        try:
            return counter.read(index)
        except TableError as error:  # not skipped: a skipped check would look like a passed one
            raise StfError(str(error)) from error

    def _direct(self, index: str, entries: list[Entry]) -> Count:
        if not index.isdecimal() and index:
            return self._entry(index).counter
        position = int(index or 0)
        if position >= len(entries):
            raise StfError(f"there is no entry {position}: the table has {len(entries)}")
        return entries[position].counter


def packet_bytes(data: str) -> bytes:
    """Convert hexadecimal digits; raise StfError for half a byte, as BMv2's runner does."""
    digits = "".join(data.split())
    if len(digits) % 2:
        raise StfError(f"the packet has {len(digits)} digits, which is not a whole number of bytes")
    return bytes.fromhex(digits)


def _index(text: str) -> int:
    value = number(text)
    if not isinstance(value, int):
        raise StfError(f"{text!r} is not a number")
    return value


def _named(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the known name that `name` stands for. Raises SwitchError."""
    names = list(known)
    try:
        return resolve(kind, name, names, where)
    except SwitchError:
        fitting = [n for n in names if n.endswith(name)]
        if len(fitting) != 1:
            raise
        return fitting[0]


def _field_named(name: str, known: list[str], where: str) -> str:
    """Return a key field: `h$0.x` is `h[0].x`; `h.valid`, `h.$valid$` and `h` are `h.isValid()`.

    Raises SwitchError.
    """
    element = _ELEMENT.sub(r"[\1]", name)
    for spelling in (name, element, f"{element}$", _validity(element)):
        fitting = [n for n in known if n == spelling or n.endswith(f".{spelling}")]
        if spelling in fitting or len(fitting) == 1:
            return spelling if spelling in fitting else fitting[0]
    return resolve("match field", name, known, where)


def _validity(name: str) -> str:
    """Return the name of a header's validity, from `h`, `h.isValid()`, `h.valid` or `valid`."""
    name = name.removesuffix("()")
    for ending in ("valid", "isValid"):
        if name == ending or name.endswith(f".{ending}"):
            return name[: -len(ending)] + _VALID
    return f"{name}.{_VALID}"


# -- the packets that must leave ------------------------------------------------------------------

# As in BMv2's runner: at the end, each port that a `packet` or `expect` names must have sent as
# many packets as it has expectations, in that order. An expectation is a prefix, with `$` the
# whole packet, without bytes any packet. Packets through ports that the file does not name are
# ignored, unless the file has `no_packet` and expects nothing.


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected packet. `digits`: hexadecimal, `*` for any digit. `whole`: nothing may follow."""

    line: int
    digits: str
    whole: bool

    def difference(self, packet: bytes) -> str:
        """Describe how a packet differs; return "" where it fits."""
        got = packet.hex()
        if len(got) < len(self.digits):
            return f"too short: {len(got)} digits for {len(self.digits)}"
        for i, (wanted, digit) in enumerate(zip(self.digits, got, strict=False)):
            if wanted not in ("*", digit):
                return f"digit {i} (byte {i // 2}) is {digit}, not {wanted}"
        if self.whole and len(got) > len(self.digits):
            return f"too long: {len(got)} digits for {len(self.digits)}"
        return ""

    def __str__(self) -> str:
        return self.digits + "$" * self.whole or "any"


class Expectations:
    """The packets that are expected and those that were sent, by port."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.ports: set[int] = set()  # named in the file
        self.nothing = False  # no_packet
        self._expected: defaultdict[int, list[Expected]] = defaultdict(list)
        self._sent: defaultdict[int, list[bytes]] = defaultdict(list)

    def expect(self, line: int, port: int, digits: str, whole: bool) -> None:
        self.ports.add(port)
        self._expected[port].append(Expected(line, digits.lower(), whole))

    def sent(self, port: int, packet: bytes) -> None:
        self._sent[port].append(packet)

    def failures(self) -> list[str]:
        """Return a message for each port whose packets are not as expected."""
        ports = set(self.ports)
        if self.nothing and not self._expected:
            ports |= set(self._sent)
        return [message for port in sorted(ports) for message in self._port(port)]

    def _port(self, port: int) -> Iterator[str]:
        expected, sent = self._expected[port], self._sent[port]
        if len(expected) != len(sent):
            yield self._miscount(port, expected, sent)
        else:
            yield from self._differences(port, expected, sent)

    def _differences(self, port: int, expected: list[Expected], sent: list[bytes]) -> Iterator[str]:
        for i, (wanted, packet) in enumerate(zip(expected, sent, strict=True), 1):
            difference = wanted.difference(packet)
            if difference:
                what = f"{self.file}:{wanted.line}: packet {i} on port {port}: {difference}"
                yield f"{what}\n    expected {wanted}\n    received {packet.hex()}"

    def _miscount(self, port: int, expected: list[Expected], sent: list[bytes]) -> str:
        place = f"{self.file}:{expected[0].line}" if expected else self.file
        lines = [f"{place}: port {port} sent {_packets(len(sent))}, expected {len(expected)}"]
        lines += [f"    expected {wanted} (line {wanted.line})" for wanted in expected]
        lines += [f"    received {packet.hex()}" for packet in sent]
        return "\n".join(lines)


def _packets(count: int) -> str:
    return f"{count} packet" if count == 1 else f"{count} packets"
