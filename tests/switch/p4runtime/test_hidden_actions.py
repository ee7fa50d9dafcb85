"""Entries whose action the control plane does not know: @hidden in the source."""

from finsy.proto import p4r

from gradplane.switch.compiler import compile_program
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.read import read
from gradplane.switch.switch import Switch

TEXT = """
#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> x; bit<8> y; }
struct H { a_t a; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.a); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    @hidden action secret() { h.a.y = 9; }
    action set(bit<8> v) { h.a.y = v; }
    table t { key = { h.a.x : exact; } actions = { set; secret; }
              const entries = { 1 : set(3); 2 : secret(); } default_action = secret(); }
    apply { t.apply(); s.egress_spec = 1; }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_they_are_read_without_an_action() -> None:
    program = compile_program("t.p4", text=TEXT)
    device = Device(lambda source: program, Switch)
    device.load(program)
    assert device.pipeline is not None
    query = p4r.Entity()
    query.table_entry.SetInParent()
    default = p4r.Entity()
    [default.table_entry.table_id] = device.pipeline.catalog.tables
    default.table_entry.is_default_action = True
    found = [e.table_entry for a in read(device.target, [query, default]) for e in a.entities]
    actions = [e.action.action for e in found if not e.is_default_action]
    assert sorted(len(a.params) for a in actions) == [0, 1]
    assert [a.action_id != 0 for a in actions] == [bool(a.params) for a in actions]
    assert found[-1].is_default_action and found[-1].action.action.action_id == 0
