// A header in metadata, with its validity, from parser to egress.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; h_t inner; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); m.inner = h.h; transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
  apply { s.egress_spec = 1; if (m.inner.isValid()) { h.g = m.inner; h.g.a = h.g.a + 1; } h.h.setInvalid(); m.inner.b = 7; }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { h.g.b = m.inner.b; } }
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.g); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
