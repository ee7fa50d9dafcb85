// The numbers of PSA's types in headers, as a controller would have them, and times that do not run
// backwards.
#include "first.p4h"
header told_t {
    PortIdInHeader_t port;
    MulticastGroupInHeader_t group;
    CloneSessionIdInHeader_t session;
    ClassOfServiceInHeader_t service;
    EgressInstanceInHeader_t instance;
    PacketLengthInHeader_t length;
}
struct headers_t { data_t d; told_t t; }
#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        h.t.setValid();
        h.t.port = psa_PortId_int_to_header(s.ingress_port);
        h.t.group = psa_MulticastGroup_int_to_header(o.multicast_group);
        o.clone_session_id = (CloneSessionId_t) (bit<16>) h.d.x;
        h.t.session = psa_CloneSessionId_int_to_header(o.clone_session_id);
        o.class_of_service = (ClassOfService_t) h.d.y;
        h.t.service = psa_ClassOfService_int_to_header(o.class_of_service);
        h.t.length = psa_PacketLength_int_to_header((PacketLength_t) h.d.w);
        PortId_t back = psa_PortId_header_to_int(h.t.port);
        if (back == s.ingress_port) { send_to_port(o, (PortId_t) 1); }
        TimestampInHeader_t now = psa_Timestamp_int_to_header(s.ingress_timestamp);
        if (psa_Timestamp_header_to_int(now) == (Timestamp_t) 0) { ingress_drop(o); }
        h.d.w = (bit<16>) (TimestampUint_t) s.ingress_timestamp;
    }
}
#define HAS_EGRESS
EGRESS(egress) {
    apply { h.d.z = (bit<8>) ((TimestampUint_t) s.egress_timestamp >> 4); }
}
#include "rest.p4h"
