// The calls of v1model before 2021 name what to preserve: of the metadata and the standard metadata.
#define HAS_META
#include "../first.p4h"
struct pair_t { bit<8> a; bit<8> b; }
struct meta_t { pair_t pair; bit<8> rounds; @field_list(1) bit<8> marked; }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action again() { resubmit({ s, m.rounds }); }
    apply {
        s.egress_spec = 1;
        m.pair = { 1, 2 };
        m.marked = 3;
        m.rounds = m.rounds + 1;
        h.d.x = (bit<8>)s.ingress_port;
        if (h.d.op == 1) { clone3(CloneType.I2E, 5, { m.pair.a, m.rounds }); }
        if (h.d.op == 2) {
            clone3<tuple<standard_metadata_t, meta_t>>(CloneType.I2E, 32w5, { s, m });
        }
        if (h.d.op == 3) { clone3(CloneType.I2E, 5, m.pair); }
        if (h.d.op == 4) { clone3(CloneType.I2E, 5, {}); }
        if (h.d.op == 5 && m.rounds < 3) { again(); }
        m.pair.b = 9;    // what is preserved is taken at the end of ingress
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.y = m.pair.a + m.pair.b;
        h.d.z = m.rounds;
        h.d.w = (bit<16>)s.ingress_port;
        if (h.d.op == 6 && m.rounds < 3) { recirculate({ m.rounds, s.ingress_port }); }
        if (h.d.op == 7 && s.instance_type == 0) { clone3(CloneType.E2E, 5, { m.marked, m.rounds }); }
    }
}
#include "../rest.p4h"
