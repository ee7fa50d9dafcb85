// The switch's own queues: depths as a packet comes and leaves, its waiting time, a full queue.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_EGRESS
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.x = (bit<8>)s.enq_qdepth;
        h.d.y = (bit<8>)s.deq_qdepth;
        h.d.w = (bit<16>)(s.deq_timedelta / 1000);   // milliseconds
    }
}
#include "../rest.p4h"
