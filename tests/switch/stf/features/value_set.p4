// A value set without members matches nothing; with others in the same select.
#define HAS_META
#include "../first.p4h"
struct headers_t { data_t d; }
struct meta_t { bit<8> path; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) tags;
    state start {
        p.extract(h.d);
        transition select(h.d.op) {
            tags: tagged;
            0x10 &&& 0xf0: sixteens;
            0x20 .. 0x2f: thirties;
            default: accept;
        }
    }
    state tagged { m.path = 1; transition accept; }
    state sixteens { m.path = 2; transition select(h.d.x, h.d.y) {
        (1, _): first;
        (_, 1 .. 3): second;
        (0x80 &&& 0x80, 0xff): third;
        default: accept;
    } }
    state thirties { m.path = 3; transition accept; }
    state first { m.path = 4; transition accept; }
    state second { m.path = 5; transition accept; }
    state third { m.path = 6; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.z = m.path; }
}
#include "../rest.p4h"
