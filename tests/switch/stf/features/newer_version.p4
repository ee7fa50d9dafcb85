// Index types of the newer v1model: registers, counters and meters.
#define V1MODEL_VERSION 20200408
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<8>, bit<8>>(4) r; counter<bit<4>>(4, CounterType.packets) c; meter<bit<8>>(4, MeterType.bytes) me;
    apply { s.egress_spec = (PortId_t)1; bit<8> v; r.read(v, h.d.x); r.write(h.d.x, v + 1); h.d.y = v; c.count((bit<4>)h.d.x); me.execute_meter(8w0, h.d.z); }
}
#include "../rest.p4h"
