// A flow changes its path only after a pause: flowlets, by timestamps in registers.
#include "../ip.p4h"
#define GAP 48w100000       // microseconds

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; }
struct meta_t { bit<13> flow; bit<48> last; bit<16> flowlet; bit<8> path; }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); p.extract(h.ipv4); p.extract(h.udp); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<16>>(8192) ids;
    register<bit<48>>(8192) times;

    action read() {
        hash(m.flow, HashAlgorithm.crc16, 13w0,
             { h.ipv4.src, h.ipv4.dst, h.ipv4.protocol, h.udp.sport, h.udp.dport }, 26w8192);
        times.read(m.last, (bit<32>)m.flow);
        ids.read(m.flowlet, (bit<32>)m.flow);
        times.write((bit<32>)m.flow, s.ingress_global_timestamp);
    }
    action forward(port_t port) { s.egress_spec = port; }
    table paths { key = { m.path : exact; } actions = { forward; } }
    apply {
        @atomic {
            read();
            if (m.last != 0 && s.ingress_global_timestamp - m.last > GAP) {
                m.flowlet = m.flowlet + 1;
                ids.write((bit<32>)m.flow, m.flowlet);
            }
        }
        m.path = (bit<8>)(m.flowlet & 1);
        paths.apply();
        h.ipv4.id = m.flowlet;
    }
}
#include "../rest.p4h"
