// Copies for each port and instance of a group; an empty group drops. Each copy has its own way
// through egress.
#define NORMAL_T carried_t
struct carried_t { bit<8> x; }
#define HAS_META
#include "first.p4h"
struct headers_t { data_t d; }
struct meta_t { bit<8> x; }

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        o.class_of_service = (ClassOfService_t) 3;
        send_to_port(o, (PortId_t) 9);
        multicast(o, (MulticastGroup_t) (bit<32>) h.d.x);
    }
}

#define HAS_INGRESS_DEPARSER
INGRESS_DEPARSER(IngressDeparserImpl) {
    apply {
        if (psa_normal(o)) { normal.x = h.d.x + 1; }
        p.emit(h);
    }
}

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start { p.extract(h.d); m.x = normal.x; transition accept; }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        h.d.op = path_number(s.packet_path);
        h.d.y = m.x;
        h.d.z = (bit<8>) (ClassOfServiceUint_t) s.class_of_service;
        h.d.w = (EgressInstanceUint_t) s.instance;
        if (s.egress_port == (PortId_t) 4) { egress_drop(o); }
    }
}
#include "rest.p4h"
