"""A program with one of everything that commands work on."""

from __future__ import annotations

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct H { ethernet_t eth; }
struct M { bit<16> l4; bit<8> kind; }
struct pair_t { bit<16> a; bit<8> b; }
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t s) {
    value_set<bit<16>>(4) types;
    value_set<pair_t>(4) pairs;
    state start {
        b.extract(h.eth);
        transition select(h.eth.type, h.eth.src[7:0]) {
            pairs: seven;
            default: more;
        }
    }
    state more { transition select(h.eth.type) { types: seven; default: accept; } }
    state seven { m.kind = 7; transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    counter(4, CounterType.packets_and_bytes) seen;
    direct_counter(CounterType.packets_and_bytes) hits;
    register<bit<32>>(3) cells;
    meter(2, MeterType.packets) rates;
    direct_meter<bit<2>>(MeterType.bytes) entry_rates;
    bit<2> colour;
    action drop() { mark_to_drop(s); }
    action forward(bit<9> port) { s.egress_spec = port; }
    action group(bit<16> id) { s.mcast_grp = id; }
    action clone_to(bit<9> port) { s.egress_spec = port; clone(CloneType.I2E, 5); }
    action counted(bit<9> port) { s.egress_spec = port; hits.count(); }
    action metered(bit<9> port) { s.egress_spec = port; entry_rates.read(colour); }
    table hosts {
        key = { h.eth.dst: exact; }
        actions = { forward; group; clone_to; drop; }
        default_action = drop();
    }
    table acl {
        key = { h.eth.src: ternary; h.eth.type: range; m.kind: optional; }
        actions = { counted; drop; NoAction; }
        counters = hits;
        support_timeout = true;
    }
    table limits {
        key = { h.eth.type: lpm; }
        actions = { metered; NoAction; }
        meters = entry_rates;
    }
    table paths {
        key = { h.eth.type: exact; h.eth.dst: selector; }
        actions = { forward; drop; }
        implementation = action_selector(HashAlgorithm.crc16, 8, 8);
    }
    apply {
        hosts.apply();
        acl.apply();
        limits.apply();
        paths.apply();
        seen.count((bit<32>) s.ingress_port);
        cells.write(1, 5);
        rates.execute_meter(0, colour);
        if (m.kind == 7) { s.egress_spec = 70; }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) {
    apply { if (s.egress_rid != 0) { h.eth.src = (bit<48>) s.egress_rid; } }
}
control C(inout H h, inout M m) { apply { } }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def packet(dst: int, src: int = 1, type: int = 0x0800) -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + type.to_bytes(2, "big")
