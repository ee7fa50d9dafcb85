// Invalid headers read as zero, take no writes, are not emitted; copies carry validity.
#include "../first.p4h"
header h_t { bit<8> v; }
struct headers_t { data_t d; h_t a; h_t b; h_t[2] s; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h_t local;
        switch (h.d.op) {
            0: { h.a.v = 5; }
            1: { h.a.setValid(); h.b.setValid(); h.b.v = 7; h.b.setInvalid(); h.a.v = 1; }
            2: { h.b.setValid(); h.b.v = 7; h.a = h.b; h.b.v = 8; }
            3: { h.a.setValid(); h.a.v = 1; h.a = h.b; }
            4: { local.setValid(); local.v = 9; h.s[1] = local; h.s[0] = h.s[1]; h.s[1].setInvalid(); }
            5: { h.a.setValid(); h.a.v = 3; h.a.setValid(); }
            6: { h.d.setInvalid(); }
            7: { if (h.a.isValid() || !h.d.isValid()) { h.d.z = 1; } }
        }
    }
}
#include "../rest.p4h"
