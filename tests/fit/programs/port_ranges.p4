// Ranges of ports of TCP and UDP, in two tables.
#define METADATA bit<8> c;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action set_class(bit<8> c) { md.c = c; }
    table tcp_ranges { key = { hdr.tcp.src : range; hdr.tcp.dst : range; } actions = { set_class; NoAction; } const default_action = NoAction(); size = 256; }
    table udp_ranges { key = { hdr.udp.src : range; hdr.udp.dst : range; } actions = { set_class; NoAction; } const default_action = NoAction(); size = 256; }
    table lengths { key = { hdr.ip.length : range; md.c : exact; } actions = { send; drop; } const default_action = drop(); size = 512; }
    apply {
        if (hdr.tcp.isValid()) { tcp_ranges.apply(); } else if (hdr.udp.isValid()) { udp_ranges.apply(); }
        lengths.apply();
    }
}
#include "stack_end.p4"
