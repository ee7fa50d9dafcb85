// Registers: their cells last, index beyond the end, set and reset by the control plane.
#include "../first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<16>>(8) sums;
    register<bit<1>>(8) flags;
    register<int<8>>(2) signs;
    apply {
        s.egress_spec = 1;
        bit<16> v = 0xdead;
        int<8> n;
        bit<1> f;
        switch (h.d.op) {
            0: { sums.read(v, (bit<32>)h.d.x); v = v + h.d.w; sums.write((bit<32>)h.d.x, v); h.d.w = v; }
            1: { flags.read(f, (bit<32>)h.d.x); flags.write((bit<32>)h.d.x, 1); h.d.z = (bit<8>)f; }
            2: { signs.read(n, 1); h.d.z = (bit<8>)n; signs.write(1, n - 1); }
            3: { sums.write(99, 5); sums.read(v, 0); h.d.w = v; }
        }
    }
}
#include "../rest.p4h"
