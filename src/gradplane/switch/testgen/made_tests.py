"""Tests as they are written down: what a control plane sets, packets, and what must leave.

A run becomes a test by being done again, from the statements that the .stf file will have, on two
switches with other random numbers and another time; where these differ, any digit is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.entries import ActionData, Entry, MemberRef
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.packet_passes import Output
from gradplane.switch.stf.stf_grammar import StfError, parse
from gradplane.switch.stf.tester import PACKET_NS, Clock, Tester
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.runs import Given, Goal, Made, Run

Expected = tuple[int, str]
"""A packet that must leave: its port, and hexadecimal digits with `*` for any."""


@dataclass(frozen=True)
class MadeTest:
    """A test. expected: of each packet. setup: the statements of an STF file before the packets."""

    number: int
    covers: list[Goal]
    made: Made
    setup: list[str]
    packets: tuple[Given, ...]
    expected: list[list[Expected]]


class Maker:
    """Makes tests of runs. `switches` run the same program with other seeds and clocks."""

    def __init__(self, switches: Sequence[tuple[Switch, Clock]]) -> None:
        self.switches = switches
        self.unsteady = 0  # runs in which different packets leave each time

    def tests(self, runs: Sequence[Run], goals: set[Goal]) -> list[MadeTest]:
        """Return the tests that runs make, each with what it covers first."""
        left = set(goals)
        tests: list[MadeTest] = []
        for run in runs:
            setup = list(stf_setup(run.made))
            expected = self._expected(setup, run.inputs.packets)
            if expected is None:
                self.unsteady += 1
                continue
            covers = sorted(run.covered & left, key=in_order)
            left -= run.covered
            packets = run.inputs.packets
            tests.append(MadeTest(len(tests) + 1, covers, run.made, setup, packets, expected))
        return tests

    def _expected(
        self, setup: Sequence[str], packets: Sequence[Given]
    ) -> list[list[Expected]] | None:
        first, second = (_outputs(switch, clock, setup, packets) for switch, clock in self.switches)
        found = []
        for one, other in zip(first, second, strict=True):
            if [(p, len(d)) for p, d in one] != [(p, len(d)) for p, d in other]:
                return None
            pairs = zip(one, other, strict=True)
            found.append([(port, _common(a.hex(), b.hex())) for (port, a), (_, b) in pairs])
        return found


def in_order(goal: Goal) -> tuple[str, int, int, str, str]:
    """Return what goals are sorted by: their places."""
    kind, place, outcome = goal
    return place.file, place.line, place.column, kind, outcome


def _outputs(
    switch: Switch, clock: Clock, setup: Sequence[str], packets: Sequence[Given]
) -> list[list[Output]]:
    switch.reset()
    tester = Tester(switch, clock, "test")
    for statement in parse("\n".join(setup), "test"):
        tester.run(statement)
    if tester.refused:
        raise StfError("\n".join(tester.refused))
    left = []
    for given in packets:
        clock.now += PACKET_NS
        left.append(switch.process(given.port, given.data))
    return left


def _common(a: str, b: str) -> str:
    return "".join(x if x == y else "*" for x, y in zip(a, b, strict=True))


# -- STF ------------------------------------------------------------------------------------------


def stf_text(test: MadeTest, heading: str) -> str:
    """Return a test as an .stf file."""
    lines = [f"# {heading}", *(f"#   {text}" for text in covered_lines(test)), "", *test.setup]
    for given, expected in zip(test.packets, test.expected, strict=True):
        lines.append(f"packet {given.port} {given.data.hex()}".rstrip())
        lines += [f"expect {port} {digits}$" for port, digits in expected]
    if not any(test.expected):
        lines.append("no_packet")
    return "\n".join(lines) + "\n"


def covered_lines(test: MadeTest) -> Iterator[str]:
    """Yield what a test covers as the first, a text for each file: its lines."""
    lines: dict[str, set[int]] = {}
    for _, place, _ in test.covers:
        lines.setdefault(place.file, set()).add(place.line)
    for file, numbers in lines.items():
        yield f"{file}: {ranges(numbers)}"


def ranges(numbers: set[int]) -> str:
    """Return numbers as text: "3-5, 8"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


def stf_setup(made: Made) -> Iterator[str]:
    """Yield the statements that give a switch the state of a test."""
    node = 0
    for group, ports in made.groups.items():
        yield f"mc_mgrp_create {group}"
        for instance, port in enumerate(ports, 1):
            yield f"mc_node_create {instance} {port}"
            yield f"mc_node_associate {group} {node}"
            node += 1
    for session, port in made.sessions.items():
        yield f"mirroring_add {session} {port}"
    for register, index, value in made.cells:
        yield f"register_write {_quoted(register.name)} {index} {value}"
    for value_set, member in made.members:
        yield " ".join(["pvs_add", value_set.name, *map(hex, member)])
    for name, (table, data) in made.defaults.items():
        yield f"setdefault {_quoted(name)} {_call(table.table, data)}"
    for table, entry, data in made.entries:
        yield (_member_lines if table.profile else _add)(table, entry, data)


def _add(table: MatchTable, entry: Entry, data: ActionData) -> str:
    priority = [str(entry.priority - 1)] if table.with_priority else []
    matches = [
        f"{_quoted(f.name)}:{_match(f, m)}"
        for f, m in zip(table.fields, entry.matches, strict=True)
    ]
    call = _call(table.table, data)
    return " ".join(["add", _quoted(table.table.name), *priority, *matches, call])


def _member_lines(table: MatchTable, entry: Entry, data: ActionData) -> str:
    """Return the commands for an entry with a member of its own."""
    assert table.profile is not None and isinstance(entry.action, MemberRef), entry.action
    action = table.table.actions[data.index].action
    values = [hex(value) for value in data.args]
    matches = [_match(f, m) for f, m in zip(table.fields, entry.matches, strict=True)]
    priority = [str(entry.priority)] if table.with_priority else []
    create = ["act_prof_create_member", table.profile.name, action.name, *values]
    add = ["table_indirect_add", table.table.name, *matches, "=>", str(entry.action.id), *priority]
    return " ".join(create) + "\n" + " ".join(add)


def _call(table: ir.Table, data: ActionData) -> str:
    """Return an action with its data."""
    action = table.actions[data.index].action
    pairs = zip(action.params, data.args, strict=True)
    return f"{_quoted(action.name)}({', '.join(f'{p.name}:{int(value):#x}' for p, value in pairs)})"


def _match(f: KeyField, match: Match) -> str:
    """Return a match of one value, with all digits of the field."""
    assert match is not None, f
    digits = f"0x{match[0]:0{(f.width + 3) // 4}x}"
    return {
        "lpm": f"{digits}/{f.width}", "range": f"{digits}->{digits}",
        "ternary": f"{digits}&&&0x{f.full:x}",
    }.get(f.kind, digits)  # fmt: skip


def _quoted(name: str) -> str:
    return name if all(c.isalnum() or c in "._$[]" for c in name) else f'"{name}"'


# -- JSON -----------------------------------------------------------------------------------------


def json_form(test: MadeTest) -> dict[str, Any]:
    """Return a test as plain data."""
    packets = [
        {
            "port": given.port,
            "packet": given.data.hex(),
            "expected": [{"port": port, "packet": digits} for port, digits in expected],
        }
        for given, expected in zip(test.packets, test.expected, strict=True)
    ]
    return {
        "test": test.number,
        "covers": [
            {"what": kind, "place": str(place), "outcome": outcome}
            for kind, place, outcome in test.covers
        ],
        "groups": {
            str(group): [{"port": port, "instance": i} for i, port in enumerate(ports, 1)]
            for group, ports in test.made.groups.items()
        },
        "clone_sessions": {str(number): port for number, port in test.made.sessions.items()},
        "registers": [
            {"register": register.name, "index": index, "value": value}
            for register, index, value in test.made.cells
        ],
        "value_sets": [
            {"value_set": value_set.name, "member": list(member)}
            for value_set, member in test.made.members
        ],
        "defaults": [
            {"table": name, **_action_data(table, data)}
            for name, (table, data) in test.made.defaults.items()
        ],
        "entries": [_entry_data(*made) for made in test.made.entries],
        "packets": packets,
    }


def _entry_data(table: MatchTable, entry: Entry, data: ActionData) -> dict[str, Any]:
    fields = {
        f.name: {"kind": f.kind, "match": list(m or ())}
        for f, m in zip(table.fields, entry.matches, strict=True)
    }
    member = {"member": entry.action.id} if isinstance(entry.action, MemberRef) else {}
    action = _action_data(table, data)
    return {
        "table": table.table.name, "priority": entry.priority, "fields": fields, **member, **action
    }  # fmt: skip


def _action_data(table: MatchTable, data: ActionData) -> dict[str, Any]:
    action = table.table.actions[data.index].action
    params = zip(action.params, data.args, strict=True)
    return {"action": action.name, "params": {p.name: int(value) for p, value in params}}
