// A table forwards; what is not in it is dropped, as PSA has it for a packet that nothing is done
// with. Ports have 32 bits; the class of service reaches egress.
#define HAS_META
#include "first.p4h"
struct headers_t { data_t d; }
struct meta_t { bit<8> path; }

#define HAS_INGRESS
INGRESS(ingress) {
    action forward(PortId_t port, ClassOfService_t service) {
        send_to_port(o, port);
        o.class_of_service = service;
    }
    action stay() { }
    table routes {
        key = { h.d.x : exact; s.ingress_port : ternary; }
        actions = { forward; stay; }
        default_action = stay();
    }
    apply {
        h.d.y = path_number(s.packet_path);
        routes.apply();
    }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        h.d.z = path_number(s.packet_path);
        h.d.w[15:8] = (bit<8>) (ClassOfServiceUint_t) s.class_of_service;
        h.d.w[7:0] = (bit<8>) (EgressInstanceUint_t) s.instance;
        if (s.egress_port == (PortId_t) 70000) { h.d.op = 0x70; }
    }
}
#include "rest.p4h"
