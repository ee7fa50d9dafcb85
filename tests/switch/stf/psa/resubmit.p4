// A resubmitted packet is as it came, comes from the same port, and has what was written on it.
#define RESUBMIT_T note_t
struct note_t { bit<8> rounds; bit<16> w; }
#define HAS_META
#include "first.p4h"
struct headers_t { data_t d; }
struct meta_t { note_t note; }

#define HAS_INGRESS_PARSER
INGRESS_PARSER(IngressParserImpl) {
    state start {
        p.extract(h.d);
        transition select(s.packet_path) {
            PSA_PacketPath_t.RESUBMIT: again;
            default: accept;
        }
    }
    state again { m.note = resubmitted; transition accept; }
}

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        send_to_port(o, (PortId_t) 2);
        o.multicast_group = (MulticastGroup_t) 9;
        if (m.note.rounds < h.d.x) {
            o.resubmit = true;
        } else {
            o.multicast_group = (MulticastGroup_t) 0;
        }
        h.d.y = h.d.y + 1;
        h.d.z = path_number(s.packet_path);
        h.d.w = m.note.w;
        if (s.ingress_port == (PortId_t) 6) { h.d.op = 6; }
    }
}

#define HAS_INGRESS_DEPARSER
INGRESS_DEPARSER(IngressDeparserImpl) {
    apply {
        if (psa_resubmit(o)) {
            resubmit.rounds = m.note.rounds + 1;
            resubmit.w = m.note.w + 0x100;
        }
        p.emit(h);
    }
}
#include "rest.p4h"
