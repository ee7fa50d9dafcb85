// A stack of ports, of which each switch takes the first.
#define MORE_TYPES header hop_t { bit<1> last; bit<15> port; }
#define MORE_FIRST 
#define MORE_LAST hop_t[8] hops;
#define MORE_TYPES_OF_ETHERNET 0x1234 : hops;
#define MORE_STATES state hops { pkt.extract(hdr.hops.next); transition select(hdr.hops.last.last) { 1 : accept; default : hops; } }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    apply {
        if (hdr.hops[0].isValid()) {
            tm.ucast_egress_port = hdr.hops[0].port[8:0];
            if (hdr.hops[0].last == 1) { hdr.eth.type = 0x0800; }
            hdr.hops.pop_front(1);
        } else { drop(); }
    }
}
#include "stack_end.p4"
