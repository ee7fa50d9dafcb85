// What is wrong with a varbit's size: no whole bytes, beyond the packet, or too large, in BMv2's
// order; and with how far to advance.
#include "../first.p4h"
header v_t { varbit<32> v; }
struct headers_t { data_t d; v_t v; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); transition select(h.d.op) { 0: varying; default: skip; } }
    state varying { p.extract(h.v, (bit<32>)h.d.x); transition accept; }
    state skip { p.advance((bit<32>)h.d.x); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; 
     if (s.parser_error == error.ParserInvalidArgument) { h.d.y = 1; }
     if (s.parser_error == error.HeaderTooShort) { h.d.y = 2; }
     if (s.parser_error == error.PacketTooShort) { h.d.y = 3; } }
}
#include "../rest.p4h"
