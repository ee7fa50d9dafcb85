// A field list by the name of a constant.
#include <core.p4>
#include <v1model.p4>
enum bit<8> FL { none = 0, keep = 3 }
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M { @field_list(FL.keep, FL.none) bit<8> x; bit<8> y; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) { state start { p.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; if (sm.instance_type == 0) { m.x = 7; m.y = 8; resubmit_preserving_field_list((bit<8>) FL.keep); } hdr.h.b = m.x; hdr.h.a = m.y; }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
