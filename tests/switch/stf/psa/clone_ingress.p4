// Clones are as the packet came, whatever ingress does to it, and take metadata along; they are
// made of dropped and resubmitted packets too.
#define CLONE_I2E_T note_t
struct note_t { bit<8> x; bit<8> y; }
#define HAS_META
#include "first.p4h"
struct headers_t { data_t d; }
struct meta_t { note_t note; }

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        send_to_port(o, (PortId_t) 1);
        o.clone = h.d.op[0:0] == 1;
        o.clone_session_id = (CloneSessionId_t) (bit<16>) h.d.x;
        if (h.d.op[1:1] == 1) { ingress_drop(o); }
        if (h.d.op[2:2] == 1 && s.packet_path == PSA_PacketPath_t.NORMAL) { o.resubmit = true; }
        m.note.x = h.d.x;
        h.d.y = 0xee;
    }
}

#define HAS_INGRESS_DEPARSER
INGRESS_DEPARSER(IngressDeparserImpl) {
    apply {
        if (psa_clone_i2e(o)) { clone = { m.note.x + 1, (bit<8>) (bit<1>) o.drop }; }
        p.emit(h);
    }
}

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start {
        p.extract(h.d);
        transition select(s.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: take;
            default: accept;
        }
    }
    state take { m.note = cloned_i2e; transition accept; }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        h.d.z = path_number(s.packet_path);
        h.d.w = m.note.x ++ m.note.y;
        if (s.packet_path == PSA_PacketPath_t.CLONE_I2E) {
            h.d.op = (bit<8>) (EgressInstanceUint_t) s.instance;
        }
    }
}
#include "rest.p4h"
