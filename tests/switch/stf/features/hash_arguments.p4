// A hash of structs, tuples, single fields and headers, invalid ones left out.
#include "../first.p4h"
header w_t { bit<16> v; }
struct headers_t { data_t d; w_t a; w_t b; }
struct s_t { bit<8> x; tuple<bit<8>, bit<16>> t; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.a); transition accept; }
}
#define HAS_INGRESS
@noWarn("invalid_header") control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; s_t v = { 1, { 2, h.a.v } };
       bit<16> r; hash(r, HashAlgorithm.crc16, 16w0, v, 32w65536); h.d.w = r;
       tuple<bit<8>, s_t> tt = { 9, v }; hash(r, HashAlgorithm.crc16, 16w0, tt, 32w65536); h.d.x = r[15:8]; h.d.y = r[7:0];
       hash(r, HashAlgorithm.identity, 16w0, { h.b.v, h.a.v, h.b }, 32w65536); h.a.v = r;
       hash(h.d.z, HashAlgorithm.crc32, 8w0, h.d.op, 9w256); 
    }
}
#include "../rest.p4h"
