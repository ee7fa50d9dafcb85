"""Requests that simple_switch_grpc (behavioral-model 1.15.5 with PI) answers otherwise than this
switch: rows of docs/coming-from-bmv2.md, "P4Runtime errors" and "Under P4Runtime", with both codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from beside_bmv2 import real_switch
from hand_made_device import DELETE, INSERT, MODIFY, announce, entity, read_all, request
from v1programs import source

from gradplane.differ.bmv2_switch import Bmv2Switch
from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError

TABLES = {
    "full": "h.a.x : exact;} size = 2;",
    "given": "h.a.x : exact;} entries = { 1 : set(1); }",
    "fixed": "h.a.x : ternary;} const entries = { 1 : set(1); }",
    "near": "h.a.x : range;}",
    "far": "m.wide : range;}",
    "signed": "m.side : range;}",
    "some": "h.a.x : exact; h.a.y : ternary;} counters = tally; meters = pace;",
    "translated": "m.port : exact;}",
    "chosen": "h.a.x : exact; h.a.y : selector;} implementation = members;",
}
COMPILED = compile_source(
    "answers.p4",
    text=source(
        types='@p4runtime_translation("p", 32) type bit<9> port_t;',
        metadata="bit<16> wide; int<8> side; port_t port; bit<8> colour;",
        parser_locals="value_set<bit<8>>(4) kinds;",
        parser="pkt.extract(h.a); transition select(h.a.kind) { kinds: accept; default: accept; }",
        ingress_locals="register<bit<8>>(4) cells; counter(4, CounterType.packets) seen;"
        " meter(4, MeterType.packets) rates; direct_counter(CounterType.packets) tally;"
        " direct_meter<bit<8>>(MeterType.packets) pace;"
        " action_selector(HashAlgorithm.crc16, 32w4, 32w16) members;"
        " action set(bit<8> v) { h.a.y = v; }"
        + "".join(
            f"table {name} {{ actions = {{ set; NoAction; }} key = {{ {rest} }}"
            for name, rest in TABLES.items()
        ),
        ingress="cells.write(0, 1); seen.count(0); rates.execute_meter(0, m.colour);"
        + "".join(f"{name}.apply();" for name in TABLES)
        + "pace.read(m.colour);",
    ),
)
INFO = build_p4info(COMPILED.program)
SET = ' action { action_id: $set params { param_id: 1 value: "\\001" } }'
ACTION = f" action {{{SET} }}"


def exact(table: str, value: int, rest: str = ACTION) -> str:
    """Return an entry of a table; value: of its first field."""
    key = f'match {{ field_id: 1 exact {{ value: "\\{value:03o}" }} }}'
    return f"table_entry {{ table_id: ${table} {key}{rest} }}"


def ranged(table: str, high: str, low: str = "\\000") -> str:
    key = f'match {{ field_id: 1 range {{ low: "{low}" high: "{high}" }} }}'
    return f"table_entry {{ table_id: ${table} {key} priority: 1{ACTION} }}"


def fixed(value: int, priority: int, rest: str = "") -> str:
    key = f'match {{ field_id: 1 ternary {{ value: "\\{value:03o}" mask: "\\377" }} }}'
    return f"table_entry {{ table_id: $fixed {key} priority: {priority}{rest} }}"


def replicated(what: str) -> str:
    return f"packet_replication_engine_entry {{ {what} }}"


MEMBER = f"action_profile_member {{ action_profile_id: $members member_id: 1{SET} }}"
GROUP = (
    "action_profile_group { action_profile_id: $members group_id: 1 max_size: 2"
    " members { member_id: 1 weight: 1 } }"
)
CHOICE = f"action_profile_actions {{ weight: 1{SET} }}"
CELL = 'register_entry { register_id: $cells index { index: 1 } data { bitstring: "\\001" } }'


@dataclass(frozen=True)
class Row:
    """A request after others, and how both answer it."""

    kind: int
    text: str
    here: str
    there: str
    before: tuple[str, ...] = ()


WRITES = {
    "a value of no bytes": Row(
        INSERT,
        'table_entry { table_id: $full match { field_id: 1 exact { value: "" } }' + ACTION + "}",
        "OUT_OF_RANGE",
        "OK",
    ),
    "an entry for a full table": Row(
        INSERT,
        exact("full", 3),
        "RESOURCE_EXHAUSTED",
        "UNKNOWN",
        (exact("full", 1), exact("full", 2)),
    ),
    "one more const entry": Row(INSERT, fixed(9, 5, ACTION), "PERMISSION_DENIED", "UNKNOWN"),
    "another const entry": Row(MODIFY, fixed(1, 1, ACTION), "PERMISSION_DENIED", "NOT_FOUND"),
    "no const entry": Row(DELETE, fixed(1, 1), "PERMISSION_DENIED", "NOT_FOUND"),
    "one more entry of the source": Row(INSERT, exact("given", 9), "OK", "UNKNOWN"),
    "another entry of the source": Row(MODIFY, exact("given", 1), "OK", "NOT_FOUND"),
    "no entry of the source": Row(DELETE, exact("given", 1), "OK", "NOT_FOUND"),
    "a range of all values of 8 bits": Row(
        INSERT, ranged("near", "\\377"), "INVALID_ARGUMENT", "INVALID_ARGUMENT"
    ),
    "a range of all values of 16 bits": Row(
        INSERT, ranged("far", "\\377\\377"), "INVALID_ARGUMENT", "OK"
    ),
    "a range of a signed key that crosses 0": Row(
        INSERT, ranged("signed", "\\001", "\\377"), "OK", "INVALID_ARGUMENT"
    ),
    "an exact field left out": Row(
        INSERT,
        f"table_entry {{ table_id: $some priority: 1{ACTION} }}",
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ),
    "a field that is not there": Row(
        INSERT,
        exact("full", 1, ' match { field_id: 7 exact { value: "\\001" } }' + ACTION),
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
    ),
    "a modification without an action": Row(
        MODIFY, exact("full", 1, ""), "OK", "INVALID_ARGUMENT", (exact("full", 1),)
    ),
    "a register's cell": Row(MODIFY, CELL, "OK", "UNIMPLEMENTED"),
    "a group that does not exist": Row(
        INSERT,
        exact("chosen", 1, " action { action_profile_group_id: 9 }"),
        "NOT_FOUND",
        "INVALID_ARGUMENT",
    ),
    "a group in use": Row(
        DELETE,
        GROUP,
        "FAILED_PRECONDITION",
        "UNKNOWN",
        (MEMBER, GROUP, exact("chosen", 1, " action { action_profile_group_id: 1 }")),
    ),
    "one-shots beyond the size": Row(
        INSERT,
        exact("chosen", 1, f" action {{ action_profile_action_set {{ {5 * CHOICE} }} }}"),
        "RESOURCE_EXHAUSTED",
        "OK",
    ),
    "a translated key": Row(INSERT, exact("translated", 1), "OK", "UNKNOWN"),
    "a cut clone": Row(
        INSERT,
        replicated(
            "clone_session_entry { session_id: 5 packet_length_bytes: 64"
            " replicas { egress_port: 3 instance: 1 } }"
        ),
        "OK",
        "UNKNOWN",
    ),
    "a replica to port 0": Row(
        INSERT,
        replicated(
            'multicast_group_entry { multicast_group_id: 6 replicas { port: "\\000" instance: 1 } }'
        ),
        "OK",
        "INVALID_ARGUMENT",
    ),
    "a group above 0x7FFF": Row(
        INSERT,
        replicated("multicast_group_entry { multicast_group_id: 0x8000 }"),
        "OK",
        "OUT_OF_RANGE",
    ),
}
DIRECT = (
    "table_entry { table_id: $some priority: 1 match { field_id: 1 exact { value: '\\001' } } }"
)
READS = {
    "a register": ("register_entry { register_id: $cells }", "OK", "UNIMPLEMENTED"),
    "a value set": ("value_set_entry { value_set_id: $kinds }", "OK", "UNIMPLEMENTED"),
    "entries of the source": ("table_entry { table_id: $given }", "OK", "INTERNAL"),
    "a counter beyond its size": (
        "counter_entry { counter_id: $seen index { index: 4 } }",
        "OUT_OF_RANGE",
        "UNKNOWN",
    ),
    "a meter beyond its size": (
        "meter_entry { meter_id: $rates index { index: 4 } }",
        "OUT_OF_RANGE",
        "UNKNOWN",
    ),
    "a direct counter of no entry": (
        f"direct_counter_entry {{ {DIRECT} }}",
        "NOT_FOUND",
        "INVALID_ARGUMENT",
    ),
    "a direct meter of no entry": (
        f"direct_meter_entry {{ {DIRECT} }}",
        "NOT_FOUND",
        "INVALID_ARGUMENT",
    ),
    "a multicast group that is not there": (
        replicated("multicast_group_entry { multicast_group_id: 77 }"),
        "OK",
        "NOT_FOUND",
    ),
    "a clone session that is not there": (
        replicated("clone_session_entry { session_id: 77 }"),
        "OK",
        "NOT_FOUND",
    ),
}


def served() -> P4RuntimeService:
    device = Device(lambda _: COMPILED.program, lambda program: Switch(program))
    device.load(COMPILED.program)
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    return made


def code_of(error: BatchError) -> str:
    [one] = error.errors
    return one.code if one else "OK"


def written(made: P4RuntimeService, kind: int, text: str) -> str:
    try:
        made.write(request([(kind, entity(INFO, text))]))
    except BatchError as error:
        return code_of(error)
    return "OK"


@pytest.mark.parametrize("row", WRITES.values(), ids=WRITES)
def test_a_write(row: Row) -> None:
    made = served()
    assert [written(made, INSERT, text) for text in row.before] == ["OK"] * len(row.before)
    assert written(made, row.kind, row.text) == row.here


@pytest.mark.parametrize(("text", "here", "there"), READS.values(), ids=READS)
def test_a_read(text: str, here: str, there: str) -> None:
    try:
        read_all(served(), entity(INFO, text))
    except BatchError as error:
        assert code_of(error) == here
    else:
        assert here == "OK"


DEFAULT = "table_entry { table_id: $chosen is_default_action: true }"


def test_a_default_entry_has_its_action() -> None:
    """Of a table with an action profile, where BMv2's has none."""
    [found] = read_all(served(), entity(INFO, DEFAULT))
    assert found.table_entry.HasField("action")


MEMBERS = "action_profile_member { action_profile_id: $members }"
WEIGHTED = GROUP.replace("weight: 1", "weight: 2")


def test_a_member_with_a_weight_is_read_once() -> None:
    made = served()
    for text in (MEMBER, WEIGHTED):
        assert written(made, INSERT, text) == "OK"
    assert len(read_all(made, entity(INFO, MEMBERS))) == 1


# -- simple_switch_grpc itself --------------------------------------------------------------------


@pytest.fixture(scope="module")
def process() -> Iterator[Bmv2Switch]:
    with real_switch() as made:
        yield made


@pytest.fixture
def theirs(process: Bmv2Switch) -> Bmv2Switch:
    """Return the process with the program just loaded."""
    info = p4_programs.p4info_message(COMPILED.program, "bmv2")
    process.load(info, p4_programs.compiled_for("bmv2", COMPILED).encode())
    return process


@pytest.mark.parametrize("row", WRITES.values(), ids=WRITES)
def test_there_a_write(theirs: Bmv2Switch, row: Row) -> None:
    for text in row.before:
        assert theirs.write(INSERT, entity(INFO, text))[0] == "OK"
    assert theirs.write(row.kind, entity(INFO, row.text))[0] == row.there


@pytest.mark.parametrize(("text", "here", "there"), READS.values(), ids=READS)
def test_there_a_read(theirs: Bmv2Switch, text: str, here: str, there: str) -> None:
    assert theirs.read(entity(INFO, text))[0] == there


def test_there_a_default_entry_has_no_action(theirs: Bmv2Switch) -> None:
    code, [found] = theirs.read(entity(INFO, DEFAULT))
    assert code == "OK" and not found.table_entry.HasField("action")


def test_there_a_member_is_read_as_often_as_its_weight(theirs: Bmv2Switch) -> None:
    for text in (MEMBER, WEIGHTED):
        assert theirs.write(INSERT, entity(INFO, text))[0] == "OK"
    code, found = theirs.read(entity(INFO, MEMBERS))
    assert code == "OK" and len(found) == 2
