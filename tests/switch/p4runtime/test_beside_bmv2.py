"""What simple_switch_grpc does otherwise (behavioral-model 1.15.5 with PI, seen by running it), and
this switch by the specifications: the rows of docs/coming-from-bmv2.md, "Under P4Runtime"."""

from __future__ import annotations

import pytest
from finsy.proto import p4d, p4r
from hand_made_device import INSERT, announce, entity, read_all, request

from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.digest_lists import DigestLists
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.p4runtime.service import P4RuntimeService
from gradplane.switch.p4runtime.status_errors import BatchError

TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
header g_t { bit<16> x; bit<16> y; }
struct H { h_t h; g_t g; }
struct M { }
struct one_t { bit<8> v; }
struct two_t { bit<16> v; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout H h, inout M m) {
    apply { verify_checksum(true, { h.g.x }, h.g.y, HashAlgorithm.csum16); }
}
control I(inout H h, inout M m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) rates;
    counter(4, CounterType.packets) seen;
    action set(bit<8> v) { h.h.b = v; }
    table t { key = { h.h.a : ternary; } actions = { set; NoAction; } }
    table fixed {
        key = { h.h.a : ternary; } actions = { set; NoAction; }
        const entries = { 1 : set(1); 2 &&& 2 : set(2); _ : set(3); }
    }
    table given {
        key = { h.h.a : exact; } actions = { set; NoAction; }
        entries = { 1 : set(1); }
    }
    action_selector(HashAlgorithm.crc16, 32w4, 32w8) sel;
    table chosen {
        key = { h.h.a : exact; h.h.b : selector; } actions = { set; NoAction; }
        implementation = sel;
    }
    apply {
        bit<8> colour;
        rates.execute_meter(0, colour);
        seen.count(0);
        s.egress_spec = 1;
        fixed.apply(); given.apply(); t.apply(); chosen.apply();
        digest<one_t>(1, { h.h.a });
        digest<two_t>(1, { h.h.c });
        h.h.c = (bit<16>) s.checksum_error;
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control K(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), K(), D()) main;
"""
PROGRAM = compile_source("beside.p4", text=TEXT).program
INFO = build_p4info(PROGRAM)


@pytest.fixture(params=["interpreter", "jit"])
def switch(request: pytest.FixtureRequest) -> Switch:
    return Switch(PROGRAM, engine=request.param)


def served(switch: Switch) -> P4RuntimeService:
    device = Device(lambda _: PROGRAM, lambda _: switch)
    device.load(PROGRAM)
    made = P4RuntimeService(device)
    made.stream_message("c", announce(1))
    return made


def entry(value: int, mask: int, result: int, priority: int = 10) -> p4r.Entity:
    return entity(
        INFO,
        f'table_entry {{ table_id: $t match {{ field_id: 1 ternary {{ value: "\\{value:03o}"'
        f' mask: "\\{mask:03o}" }} }} priority: {priority} action {{ action {{ action_id: $set'
        f' params {{ param_id: 1 value: "\\{result:03o}" }} }} }} }}',
    )


def test_of_entries_of_one_priority_the_oldest_wins(switch: Switch) -> None:
    """On BMv2 a new entry takes the place of one that was deleted, and may win."""
    made = served(switch)
    first, second, third = entry(1, 1, 1), entry(2, 2, 2), entry(4, 4, 3)
    made.write(request([(INSERT, first), (INSERT, second)]))
    made.write(request([(p4r.Update.DELETE, first), (INSERT, third)]))
    [(_, out)] = switch.process(0, bytes([7, 0, 0, 0]))
    assert out[1] == 2


def test_all_digests_of_a_packet_are_sent(switch: Switch) -> None:
    """BMv2 sends that of the last call."""
    switch.process(0, bytes([7, 0, 0, 9]))
    assert [(d.name, d.data) for d in switch.messages()] == [("one_t", [7]), ("two_t", [9])]


def test_a_checksum_over_an_invalid_header(switch: Switch) -> None:
    """As on BMv2 it is no error."""
    [(_, out)] = switch.process(0, bytes([7, 0, 0, 9]))
    assert out[2:4] == b"\0\0"


def test_priorities_of_const_entries(switch: Switch) -> None:
    """P4Runtime 1.5, "Constant Tables": N to 1. BMv2 has 2^31 - 1 less the JSON's priority, and
    does not set is_const."""
    query = entity(INFO, "table_entry { table_id: $fixed }")
    found = [e.table_entry for e in read_all(served(switch), query)]
    assert [(e.priority, e.is_const) for e in found] == [(3, True), (2, True), (1, True)]


def test_entries_of_the_source_without_const_are_read(switch: Switch) -> None:
    """On BMv2 each read of such a table fails."""
    query = entity(INFO, "table_entry { table_id: $given }")
    assert len(read_all(served(switch), query)) == 1


def test_a_read_with_a_priority_filters_by_it(switch: Switch) -> None:
    """BMv2 answers both."""
    made = served(switch)
    made.write(request([(INSERT, entry(1, 1, 1, 10)), (INSERT, entry(2, 2, 2, 20))]))
    query = entity(INFO, "table_entry { table_id: $t priority: 10 }")
    assert [e.table_entry.priority for e in read_all(made, query)] == [10]


def test_a_group_that_is_refused_does_not_exist(switch: Switch) -> None:
    """On BMv2 it exists afterwards, without members."""
    made = served(switch)
    text = "action_profile_group { action_profile_id: $sel %s }"
    members = "group_id: 2 max_size: 4 members { member_id: 9 weight: 1 }"
    with pytest.raises(BatchError):
        made.write(request([(INSERT, entity(INFO, text % members))]))
    assert read_all(made, entity(INFO, text % "")) == []


def test_a_digest_that_fills_its_list_waits_for_no_timeout() -> None:
    """On BMv2 it comes after twice the timeout, unless there is an ack_timeout_ns."""
    config = p4r.DigestEntry.Config(max_timeout_ns=2_000_000_000, max_list_size=1)
    lists = DigestLists({5: config}.get)
    (sent,) = lists.offer(5, p4d.P4Data(bitstring=b"\1"), 0)
    assert [d.bitstring for d in sent.data] == [b"\1"]


def test_rates_of_meters_are_read_as_they_were_written(switch: Switch) -> None:
    """BMv2 reads 250 and 501 for 251 and 502."""
    made = served(switch)
    text = "meter_entry { meter_id: $rates index { index: 1 } %s }"
    rates = "config { cir: 251 cburst: 10 pir: 502 pburst: 20 }"
    made.write(request([(p4r.Update.MODIFY, entity(INFO, text % rates))]))
    (found,) = read_all(made, entity(INFO, text % ""))
    assert (found.meter_entry.config.cir, found.meter_entry.config.pir) == (251, 502)


def test_replicas_read_back_in_the_order_of_writing_up_to_group_65535(switch: Switch) -> None:
    """BMv2 sorts them, and has groups to 0x7FFF."""
    made = served(switch)
    replicas = " ".join(
        f"replicas {{ egress_port: {port} instance: {instance} }}"
        for port, instance in ((3, 1), (2, 1), (2, 2))
    )
    text = (
        "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 65535 %s } }"
    )
    made.write(request([(INSERT, entity(INFO, text % replicas))]))
    (found,) = read_all(made, entity(INFO, text % ""))
    group = found.packet_replication_engine_entry.multicast_group_entry
    assert [(r.egress_port, r.instance) for r in group.replicas] == [(3, 1), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    "update",
    [
        (p4r.Update.DELETE, "counter_entry { counter_id: $seen index { index: 0 } }"),
        (INSERT, "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 1"
                 " replicas { egress_port: 1 instance: 70000 } } }"),
        (INSERT, "digest_entry { digest_id: $one_t config { max_timeout_ns: -1 } }"),
    ],
)  # fmt: skip
def test_what_bmv2_takes_and_is_refused_here(switch: Switch, update: tuple[int, str]) -> None:
    kind, text = update
    with pytest.raises(BatchError) as caught:
        served(switch).write(request([(kind, entity(INFO, text))]))  # type: ignore[list-item]
    (error,) = caught.value.errors
    assert error is not None and error.code in ("INVALID_ARGUMENT", "OUT_OF_RANGE")
