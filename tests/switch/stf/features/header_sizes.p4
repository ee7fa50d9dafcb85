// minSizeInBytes and the like.
#include "../first.p4h"
header v_t { bit<8> a; varbit<32> v; }
struct headers_t { data_t d; v_t v; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = 1; h.d.y = (bit<8>)h.d.minSizeInBytes(); h.d.z = (bit<8>)h.v.maxSizeInBits(); h.d.w = (bit<16>)h.v.minSizeInBits(); }
}
#include "../rest.p4h"
