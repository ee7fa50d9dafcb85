// Copies of the standard metadata that are marked to be dropped: the packet is dropped if one is assigned back.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.h); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
bit<8> f(in bit<8> x, inout standard_metadata_t s) { if (x == 1) { mark_to_drop(s); } return x + 1; }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        standard_metadata_t c = s;
        if (h.h.a == 2) { mark_to_drop(c); }
        h.h.b = f(h.h.a, s);
        if (h.h.a == 3) { mark_to_drop(c); s = c; }
        if (h.h.a == 4) { mark_to_drop(c); h.h.b = (bit<8>) c.egress_spec; }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
