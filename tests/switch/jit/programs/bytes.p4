// Headers of whole bytes only, which take the fast way in and out; a loop over a stack.
#include <core.p4>
#include <v1model.p4>

header eth_t { bit<48> dst; bit<48> src; bit<16> kind; }
header label_t { bit<20> label; bit<3> class; bit<1> bottom; bit<8> ttl; }
header opt_t { bit<8> size; varbit<64> data; bit<24> tail; }
header big_t { bit<24> a; bit<40> b; bit<56> c; bit<136> d; int<8> e; }
struct headers_t { eth_t eth; label_t[5] labels; opt_t opt; big_t big; }
struct meta_t { bit<8> depth; }

parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.eth);
        transition select(h.eth.kind) { 0x8847: labels; 1: opt; 2: big; 3: start_again; default: accept; }
    }
    state start_again { packet.advance(16); transition labels; }
    state labels {
        packet.extract(h.labels.next);
        m.depth = m.depth + 1;
        transition select(h.labels.last.bottom) { 1: accept; default: labels; }
    }
    state opt { packet.extract(h.opt, (bit<32>) (h.eth.src[3:0] ++ 3w0)); transition accept; }
    state big { packet.extract(h.big); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = (bit<9>) m.depth;
        if (h.labels[0].isValid()) {
            for (bit<32> i = 0; i < 5; i = i + 1) {
                if (!h.labels[i].isValid()) { break; }
                if (h.labels[i].ttl == 0) { continue; }
                h.labels[i].ttl = h.labels[i].ttl - 1;
                h.labels[i].label = (bit<20>) i ^ h.labels[i].label;
            }
            if (h.labels[4].isValid()) { h.labels.pop_front(3); }
        }
        if (h.big.isValid()) {
            h.big.d = h.big.d + (bit<136>) h.big.c;
            h.big.b = (bit<40>) h.big.a |+| h.big.b;
            h.big.e = h.big.e >> 2;
        }
        if (s.parser_error == error.StackOutOfBounds) { h.eth.src = 0xdead; }
        truncate((bit<32>) h.eth.dst[9:0]);
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.eth.dst[31:0] = s.packet_length; }
}
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
