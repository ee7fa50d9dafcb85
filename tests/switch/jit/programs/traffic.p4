// Everything the traffic manager does: multicast, clones, resubmission, recirculation, drops.
#include <core.p4>
#include <v1model.p4>

header step_t { bit<8> ingress; bit<8> egress; bit<8> left; bit<8> seen; bit<16> note; }
struct headers_t { step_t step; step_t second; }
struct inner_t { @field_list(2, 3) bit<16> deep; bit<8> lost; }
struct meta_t {
    @field_list(1, 2) bit<8> kept;
    @field_list(3) bit<48> time;
    inner_t inner;
    bit<8> never;
}

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.step); transition select(h.step.left) { 0: accept; default: second; } }
    state second { packet.extract(h.second); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(16, CounterType.packets) seen;
    apply {
        seen.count((bit<32>) s.instance_type);
        s.egress_spec = (bit<9>) h.step.ingress[7:4];
        h.step.seen = (bit<8>) s.instance_type ++ m.kept[7:0] == 0 ? 8w0 : m.kept;
        h.step.note = m.inner.deep + (bit<16>) m.never + (bit<16>) m.inner.lost + (bit<16>) s.ingress_port;
        s.priority = 3;
        m.kept = h.step.left + 1;
        m.inner.deep = h.step.note + 3;
        m.inner.lost = 5;
        bit<8> before = m.never;
        m.never = 6;
        if (s.instance_type != 0 && h.step.left == 0) { h.step.ingress = 0; }
        if (h.step.ingress[3:0] == 1) { s.mcast_grp = (bit<16>) h.step.left; }
        else if (h.step.ingress[3:0] == 2) { clone(CloneType.I2E, (bit<32>) h.step.left); }
        else if (h.step.ingress[3:0] == 3) { clone_preserving_field_list(CloneType.I2E, (bit<32>) h.step.left, 2); s.mcast_grp = 2; }
        else if (h.step.ingress[3:0] == 4 && s.instance_type != 6) { resubmit_preserving_field_list(1); }
        else if (h.step.ingress[3:0] == 5) { mark_to_drop(s); }
        else if (h.step.ingress[3:0] == 6) { digest(1, { h.step.left, h.step.note }); clone_preserving_field_list(CloneType.I2E, 1, 3); }
        else if (h.step.ingress[3:0] == 7) { resubmit_preserving_field_list(3); }
        else if (h.step.ingress[3:0] == 8) { assert(h.step.left != 2); s.egress_spec = 500; }
        else if (h.step.ingress[3:0] == 9) { h.second.setInvalid(); s.egress_rid = 9; }
        else if (h.step.ingress[3:0] == 10) { h.second.setValid(); truncate(9); }
        else if (h.step.ingress[3:0] == 11) { clone3(CloneType.I2E, (bit<32>) h.step.left, { s, m.inner }); }
        else if (h.step.ingress[3:0] == 12 && before == 0) { resubmit({ s.ingress_port, s.priority, m.never }); }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(512, CounterType.packets_and_bytes) out_count;
    apply {
        out_count.count((bit<32>) s.egress_port);
        h.step.note = h.step.note ^ s.packet_length[15:0] ^ (bit<16>) s.egress_rid ^ (s.instance_type[7:0] ++ m.kept)
            ^ (bit<16>) (s.ingress_port ++ s.priority);
        if (h.step.left != 0) {
            h.step.left = h.step.left - 1;
            if (h.step.egress[3:0] == 1) { recirculate_preserving_field_list(2); }
            else if (h.step.egress[3:0] == 2) { clone(CloneType.E2E, (bit<32>) h.step.left & 3); }
            else if (h.step.egress[3:0] == 3) { clone_preserving_field_list(CloneType.E2E, 1, 1); recirculate_preserving_field_list(3); }
            else if (h.step.egress[3:0] == 4) { mark_to_drop(s); }
            else if (h.step.egress[3:0] == 5) { truncate((bit<32>) h.step.left); }
            else if (h.step.egress[3:0] == 6) { assert(h.step.left != 2); h.second.setInvalid(); }
            else if (h.step.egress[3:0] == 7) { truncate(20); recirculate_preserving_field_list(0); }
            else if (h.step.egress[3:0] == 8) { recirculate({ m, s }); }
            else if (h.step.egress[3:0] == 9) { clone3(CloneType.E2E, 1, { s.packet_length, m.inner.deep }); }
        }
    }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.step); packet.emit(h.second); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
