// What drops a packet, and what takes that back.
#include "first.p4h"
struct headers_t { data_t d; }

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        if (h.d.op != 0) { send_to_port(o, (PortId_t) 1); }
        if (h.d.op == 2) { ingress_drop(o); }
        if (h.d.op == 3) { ingress_drop(o); send_to_port(o, (PortId_t) 2); }
        if (h.d.op == 4) { ingress_drop(o); o.multicast_group = (MulticastGroup_t) 1; }
        if (h.d.op == 5) { ingress_drop(o); o.resubmit = true; }
        if (h.d.op == 8) { send_to_port(o, (PortId_t) 3); exit; ingress_drop(o); }
    }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply {
        if (h.d.op == 6) { egress_drop(o); }
        if (h.d.op == 7) { egress_drop(o); o.drop = false; }
        if (h.d.op == 9) { egress_drop(o); exit; }
    }
}
#include "rest.p4h"
