// Of two clones the last counts; the clone is of the whole packet as it came.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; clone(CloneType.I2E, 1); clone(CloneType.I2E, 2); truncate(4); h.d.setInvalid(); }
}
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { h.d.y = (bit<8>)s.packet_length; h.d.z = (bit<8>)s.egress_rid; } }
#include "../rest.p4h"
