// A packet sent to PSA_PORT_RECIRCULATE comes in again as the egress deparser leaves it.
#define RECIRCULATE_T note_t
struct note_t { bit<16> w; }
#define HAS_META
#include "first.p4h"
header label_t { bit<8> number; bit<7> unused; bit<1> last; }
struct headers_t { data_t d; label_t label; }
struct meta_t { bit<16> w; }

#define HAS_INGRESS_PARSER
INGRESS_PARSER(IngressParserImpl) {
    state start {
        p.extract(h.d);
        m.w = recirculated.w;
        transition accept;
    }
}

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        if (h.d.x > 0) {
            send_to_port(o, PSA_PORT_RECIRCULATE);
        } else {
            send_to_port(o, (PortId_t) 1);
        }
        h.d.w = m.w;
        h.d.z = path_number(s.packet_path);
        if (s.ingress_port == PSA_PORT_RECIRCULATE) { h.d.op = h.d.op | 0x80; }
        if (h.d.op[0:0] == 1 && s.packet_path == PSA_PacketPath_t.NORMAL) {
            o.clone = true;
            o.clone_session_id = (CloneSessionId_t) 4;
        }
    }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        if (s.egress_port == PSA_PORT_RECIRCULATE) {
            h.d.x = h.d.x - 1;
            h.label.setValid();
            h.label.number = h.d.x;
            if (h.d.y == 9) { egress_drop(o); }
        }
    }
}

#define HAS_EGRESS_DEPARSER
EGRESS_DEPARSER(EgressDeparserImpl) {
    apply {
        if (psa_recirculate(o, s)) { recirculate.w = 0x1000 + (bit<16>) h.d.x; }
        p.emit(h);
    }
}
#include "rest.p4h"
