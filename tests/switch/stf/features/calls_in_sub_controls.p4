// Clones and drops that sub-controls ask for, some without the standard metadata.
#define HAS_META
#include "../first.p4h"
struct meta_t { @field_list(1) bit<8> kept; }
struct headers_t { data_t d; }
control Copies(in bit<8> op, inout meta_t m) {
    apply {
        if (op == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (op == 2) { clone(CloneType.I2E, 5); }
        m.kept = 7;
    }
}
control Drops(inout standard_metadata_t standard, in bit<8> op) {
    action drop() { mark_to_drop(standard); }
    table t {
        key = { op : exact; }
        actions = { drop; NoAction; }
        const entries = { 3 : drop(); }
    }
    apply { t.apply(); }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Copies() copies;
    Drops() drops;
    apply {
        s.egress_spec = 1;
        copies.apply(h.d.op, m);
        drops.apply(s, h.d.op);
        h.d.y = 1;
    }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Drops() drops;
    apply {
        h.d.x = m.kept;
        drops.apply(s, h.d.z);
    }
}
#include "../rest.p4h"
