// Casts between bit, int, bool, enum and types; implicit widths of literals.
#include "../first.p4h"
enum bit<8> Kind { A = 1, B = 2 }
type bit<8> Special_t;
typedef bit<8> Byte_t;
header r_t { bit<4> cut; bit<16> wide; bit<1> fromBool; bit<3> pad; int<16> sign; bit<16> sign2;
             Kind k; bit<8> fromKind; bit<8> special; bit<8> cond; }
struct headers_t { data_t d; r_t r; }
#define HAS_DEPARSER
control D(packet_out p, in headers_t h) { apply { p.emit(h.d); p.emit(h.r); } }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        Special_t special = (Special_t)h.d.y;
        Byte_t b = (Byte_t)special;
        bool flag = (bool)h.d.x[0:0];
        int<8> signed = (int<8>)h.d.x;
        h.r.setValid();
        h.r.cut = (bit<4>)h.d.x;
        h.r.wide = (bit<16>)h.d.x;
        h.r.fromBool = (bit<1>)flag;
        h.r.pad = 0;
        h.r.sign = (int<16>)signed;
        h.r.sign2 = (bit<16>)(bit<8>)signed;
        h.r.k = (Kind)h.d.z;
        h.r.fromKind = (bit<8>)Kind.B + 1;
        h.r.special = b;
        h.r.cond = flag ? 8w3 : 4;
        if (h.r.k == Kind.A) { s.egress_spec = 2; }
    }
}
#include "../rest.p4h"
