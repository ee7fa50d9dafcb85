// MPLS: a stack of six labels, looked up and popped.
#define MORE_TYPES header label_t { bit<20> label; bit<3> class; bit<1> bottom; bit<8> ttl; }
#define MORE_LAST label_t[6] labels;
#define MORE_TYPES_OF_ETHERNET 0x8847 : labels;
#define MORE_STATES state labels { pkt.extract(hdr.labels.next); transition select(hdr.labels.last.bottom) { 0 : labels; default : accept; } }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action swap(bit<20> label, PortId_t port) { hdr.labels[0].label = label; hdr.labels[0].ttl = hdr.labels[0].ttl - 1; tm.ucast_egress_port = port; }
    action pop(PortId_t port) { hdr.labels.pop_front(1); tm.ucast_egress_port = port; }
    table labels { key = { hdr.labels[0].label : exact; hdr.labels[0].bottom : exact; } actions = { swap; pop; drop; } const default_action = drop(); size = 16384; }
    apply { if (hdr.labels[0].isValid()) { labels.apply(); } }
}
#include "stack_end.p4"
