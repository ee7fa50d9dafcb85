// A parser that fails does not drop: ingress finds the error, and what was not extracted is invalid.
#define HAS_META
#include "../first.p4h"
error { TooSmall, Odd }
header tail_t { bit<32> v; }
struct headers_t { data_t d; tail_t t; }
struct meta_t { bit<8> x; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.d);
        verify(h.d.x > 1, error.TooSmall);
        verify(h.d.x[0:0] == 0, error.Odd);
        m.x = 1;
        p.extract(h.t);
        transition accept;
    }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.d.z = m.x;
        error e = s.parser_error;
        if (e == error.TooSmall) { h.d.y = 1; }
        else if (e == error.Odd) { h.d.y = 2; }
        else if (e == error.PacketTooShort) { h.d.y = 3; }
        else if (e == error.NoError) { h.d.y = 4; }
        if (h.t.isValid()) { h.t.v = 0; }
    }
}
#include "../rest.p4h"
