"""Tests as a Python file for PTF, the Packet Test Framework, over P4Runtime.

Its base class is `P4RuntimeTest` of base_test.py, which p4c, p4-guide and PI bring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradplane.switch.runtime.entries import ActionData, Entry, MemberRef
from gradplane.switch.runtime.match_fields import KeyField, Match
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.testgen.made_tests import Expected, MadeTest, covered_lines

_HEADING = '''"""Packet tests of {program}, made by gradplane p4 tests.

ptf --test-dir DIR --test-params "grpcaddr='localhost:9559';p4info='P4INFO';config='JSON'"
base_test.py must be on PYTHONPATH: p4c has it in tools/ptf, and its testutils.py in tools.
"""

import base_test
from p4.v1 import p4runtime_pb2
from ptf import testutils
from ptf.mask import Mask


class MadeTest(base_test.P4RuntimeTest):
    """Each test begins with the program's first state."""

    def setUp(self):
        super().setUp()
        self.assertTrue(self.updateConfig())

    def tearDown(self):
        """BMv2 keeps the replicas of multicast groups when a program is loaded."""
        self.undo_write_requests(self._reqs)
        super().tearDown()

    def request(self):
        """Return a request with the election id of base_test.py's controller."""
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id)
        request.election_id.low = 1
        return request

    def member(self, profile, number, action, params, table, key, priority):
        """Numbers count from 1: P4Runtime's member 0 stands for all."""
        request = self.request()
        self.push_update_add_member(request, profile, number, action, params)
        self.push_update_add_entry_to_member(request, table, key, number)
        request.updates[1].entity.table_entry.priority = priority or 0
        self.write_request(request)

    def replicate(self, kind, number, replicas):
        request = self.request()
        update = request.updates.add(type=p4runtime_pb2.Update.INSERT)
        entry = update.entity.packet_replication_engine_entry
        made = getattr(entry, kind + "_entry")
        name = "session_id" if kind == "clone_session" else kind + "_id"
        setattr(made, name, number)
        for port, instance in replicas:
            made.replicas.add(egress_port=port, instance=instance)
        self.write_request(request)

    def register(self, name, index, value):
        """BMv2 refuses this: only its other interface, Thrift, writes registers."""
        request = self.request()
        update = request.updates.add(type=p4runtime_pb2.Update.MODIFY)
        entry = update.entity.register_entry
        known = [one.preamble for one in self.p4info.registers]
        entry.register_id = next(one.id for one in known if one.name == name)
        entry.index.index = index
        entry.data.bitstring = value.to_bytes(max(value.bit_length() + 7, 8) // 8, "big")
        self.write_request(request)

    def expect(self, port, digits):
        """Digits that may be any are *."""
        expected = Mask(bytes.fromhex(digits.replace("*", "0")))
        for position, digit in enumerate(digits):
            if digit == "*":
                expected.set_do_not_care(position * 4, 4)
        testutils.verify_packet(self, expected, port)
'''
SHORTEST = 14  # bytes of a packet that an interface takes
_INDENT = " " * 8


def ptf_text(tests: Sequence[MadeTest], program: str) -> str:
    """Return a PTF file with all tests that PTF can run, and a comment for each other one."""
    parts = [_HEADING.format(program=program)]
    for test in tests:
        reason = _unfit(test)
        if reason:
            parts.append(f"\n# Test {test.number} is left out: {reason}.\n")
        else:
            parts.append("\n\n" + "\n".join(_class(test)) + "\n")
    return "".join(parts)


def _unfit(test: MadeTest) -> str:
    """Return why PTF cannot run a test; "" if it can."""
    if test.made.members:
        return "base_test.py has nothing for parser value sets"
    if any(len(given.data) < SHORTEST for given in test.packets):
        return f"an interface takes no packet below {SHORTEST} bytes"
    return ""


def _class(test: MadeTest) -> Iterator[str]:
    yield f"class Test{test.number}(MadeTest):"
    covers = list(covered_lines(test))
    if covers:
        yield '    """Covers:\n'
        yield from (f"    {text}" for text in covers)
        yield '    """\n'
    yield "    def runTest(self):"
    for line in _setup(test):
        yield _INDENT + line
    for given, expected in zip(test.packets, test.expected, strict=True):
        data = given.data.hex()
        yield f'{_INDENT}testutils.send_packet(self, {given.port}, bytes.fromhex("{data}"))'
        yield from (_INDENT + line for line in _expectations(expected))


def _expectations(expected: Sequence[Expected]) -> Iterator[str]:
    for port, digits in expected:
        yield f'self.expect({port}, "{digits}")'
    yield "testutils.verify_no_other_packets(self)"


def _setup(test: MadeTest) -> Iterator[str]:
    for group, ports in test.made.groups.items():
        replicas = [(port, instance) for instance, port in enumerate(ports, 1)]
        yield f'self.replicate("multicast_group", {group}, {replicas})'
    for session, port in test.made.sessions.items():
        yield f'self.replicate("clone_session", {session}, [({port}, 1)])'
    for register, index, value in test.made.cells:
        bits = value & ((1 << register.width) - 1)
        yield f'self.register("{register.name}", {index}, {bits})'
    for name, (table, data) in test.made.defaults.items():
        yield f'self.table_add(("{name}", None), {_action(table, data)})'
    for made in test.made.entries:
        yield _entry(*made)


def _entry(table: MatchTable, entry: Entry, data: ActionData) -> str:
    key = ", ".join(_key(f, m) for f, m in zip(table.fields, entry.matches, strict=True))
    priority = entry.priority or None
    action = _action(table, data)
    if isinstance(entry.action, MemberRef) and table.profile is not None:
        place = f'"{table.table.name}", [{key}], {priority}'
        return f'self.member("{table.profile.name}", {entry.action.id + 1}, *{action}, {place})'
    return f'self.table_add(("{table.table.name}", [{key}]), {action}, {priority})'


def _action(table: MatchTable, data: ActionData) -> str:
    action = table.table.actions[data.index].action
    params = [(p.name, int(value)) for p, value in zip(action.params, data.args, strict=True)]
    return f'("{action.name}", {params})'


def _key(f: KeyField, match: Match) -> str:
    assert match is not None, f
    kinds = {
        "exact": f"{match[0]:#x}", "lpm": f"{match[0]:#x}, {f.width}",
        "ternary": f"{match[0]:#x}, {f.full:#x}", "range": f"{match[0]:#x}, {match[0]:#x}",
        "optional": f"{match[0]:#x}, True",
    }  # fmt: skip
    return f'self.{f.kind.capitalize()}("{f.name}", {kinds[f.kind]})'
