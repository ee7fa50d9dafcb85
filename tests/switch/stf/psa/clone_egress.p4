// Clones are as the egress deparser leaves the packet, dropped or not, and go through egress again.
#define CLONE_E2E_T note_t
struct note_t { bit<16> w; }
#define HAS_META
#include "first.p4h"
struct headers_t { data_t d; data_t more; }
struct meta_t { bit<16> w; }

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start {
        p.extract(h.d);
        m.w = cloned_e2e.w;
        transition accept;
    }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        if (s.packet_path == PSA_PacketPath_t.NORMAL_UNICAST || h.d.x > 1) {
            o.clone = true;
            o.clone_session_id = (CloneSessionId_t) 8;
        }
        if (s.packet_path == PSA_PacketPath_t.CLONE_E2E) {
            h.d.w = m.w;
            h.d.z = path_number(s.packet_path);
            h.d.y = (bit<8>) (PortIdUint_t) s.egress_port;
        } else if (h.d.op == 1) {
            egress_drop(o);
        }
        h.d.x = h.d.x - 1;
        if (h.d.op == 2) { h.more.setValid(); h.more.op = 0x77; }
    }
}

#define HAS_EGRESS_DEPARSER
EGRESS_DEPARSER(EgressDeparserImpl) {
    apply {
        if (psa_clone_e2e(o)) { clone.w = 0xab00 + (bit<16>) h.d.x; }
        p.emit(h);
    }
}
#include "rest.p4h"
