// Access lists of IPv4 and IPv6 with counters.
#define METADATA bit<16> src; bit<16> dst; bit<8> flags;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits4;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits6;
    action permit4() { hits4.count(); }
    action deny4() { hits4.count(); dprsr.drop_ctl = 1; }
    action permit6() { hits6.count(); }
    action deny6() { hits6.count(); dprsr.drop_ctl = 1; }
    action tcp_ports() { md.src = hdr.tcp.src; md.dst = hdr.tcp.dst; md.flags = hdr.tcp.flags; }
    action udp_ports() { md.src = hdr.udp.src; md.dst = hdr.udp.dst; md.flags = 0; }
    table ports_of { key = { hdr.tcp.isValid() : exact; hdr.udp.isValid() : exact; } actions = { tcp_ports; udp_ports; NoAction; } const default_action = NoAction(); const entries = { (true, false) : tcp_ports(); (false, true) : udp_ports(); } }
    table acl4 { key = { ig.ingress_port : ternary; hdr.ip.src : ternary; hdr.ip.dst : ternary; hdr.ip.protocol : ternary; md.src : ternary; md.dst : ternary; md.flags : ternary; } actions = { permit4; deny4; } counters = hits4; size = 2048; }
    table acl6 { key = { hdr.ip6.src : ternary; hdr.ip6.dst : ternary; hdr.ip6.next : ternary; md.src : ternary; md.dst : ternary; } actions = { permit6; deny6; } counters = hits6; size = 512; }
    table outputs { key = { hdr.eth.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 4096; }
    apply {
        ports_of.apply();
        outputs.apply();
        if (hdr.ip.isValid()) { acl4.apply(); } else if (hdr.ip6.isValid()) { acl6.apply(); }
    }
}
#include "stack_end.p4"
