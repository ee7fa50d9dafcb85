// Registers with and without a first value, of several widths, as state and beyond their end.
#include "first.p4h"
struct headers_t { data_t d; }
#define HAS_INGRESS
INGRESS(ingress) {
    Register<bit<16>, bit<8>>(4) plain;
    Register<bit<16>, bit<8>>(4, 0xbeef) filled;
    Register<bool, PortId_t>(8, true) flags;
    Register<bit<80>, bit<8>>(2, 80w0x0102030405060708090a) wide;
    Register<int<12>, bit<8>>(2, -12s5) signed;
    apply {
        send_to_port(o, (PortId_t) 1);
        if (h.d.op == 0) {
            h.d.w = plain.read(h.d.x);
            plain.write(h.d.x, h.d.w + 3);
        } else if (h.d.op == 1) {
            h.d.w = filled.read(h.d.x);
            filled.write(h.d.x, h.d.w + 1);
        } else if (h.d.op == 2) {
            if (flags.read(s.ingress_port)) { h.d.w = 1; }
            flags.write(s.ingress_port, false);
        } else if (h.d.op == 3) {
            bit<80> old = wide.read(h.d.x);
            h.d.w = old[79:64];
            wide.write(h.d.x, old << 8);
        } else {
            int<12> old = signed.read(h.d.x);
            h.d.w = (bit<16>) (int<16>) old;
            signed.write(h.d.x, old - 1);
        }
    }
}
#include "rest.p4h"
