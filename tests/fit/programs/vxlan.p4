// Tunnels: taken off in ingress, put on in egress.
#define METADATA bit<24> vni; bit<1> tunnel; bit<16> bridge; mac_t dst;
#define EGRESS
#define MORE_TYPES header vxlan_t { bit<8> flags; bit<24> reserved; bit<24> vni; bit<8> last; } header bridge_t { bit<16> tunnel; bit<7> pad; bit<1> on; }
#define MORE_FIRST bridge_t bridge; ethernet_t outer; ipv4_t outer_ip; udp_t outer_udp; vxlan_t outer_vxlan;
#define MORE_LAST vxlan_t vxlan; ethernet_t inner;
#define MORE_UDP_PORTS 4789 : vxlan;
#define MORE_STATES state vxlan { pkt.extract(hdr.vxlan); transition inner; } state inner { pkt.extract(hdr.inner); transition accept; } state bridge { pkt.extract(hdr.bridge); transition ethernet; }
#define EGRESS_FIRST_STATE bridge
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action terminate() { md.vni = hdr.vxlan.vni; md.tunnel = 1; }
    table tunnel_ends { key = { hdr.ip.dst : exact; } actions = { terminate; NoAction; } const default_action = NoAction(); size = 512; }
    action set_bridge(bit<16> bridge) { md.bridge = bridge; }
    table vnis { key = { md.vni : exact; } actions = { set_bridge; drop; } const default_action = drop(); size = 8192; }
    table port_bridge { key = { ig.ingress_port : exact; hdr.vlan.vid : exact; } actions = { set_bridge; drop; } const default_action = drop(); size = 4096; }
    action encapsulate(PortId_t port, bit<16> tunnel) { tm.ucast_egress_port = port; hdr.bridge.tunnel = tunnel; hdr.bridge.on = 1; }
    table inner_macs { key = { md.bridge : exact; md.dst : exact; } actions = { send; encapsulate; drop; } const default_action = drop(); size = 32768; }
    apply {
        hdr.bridge.setValid();
        hdr.bridge.on = 0;
        hdr.bridge.tunnel = 0;
        if (hdr.vxlan.isValid()) { tunnel_ends.apply(); }
        if (md.tunnel == 1) {
            vnis.apply(); md.dst = hdr.inner.dst;
            hdr.eth.setInvalid(); hdr.ip.setInvalid(); hdr.udp.setInvalid(); hdr.vxlan.setInvalid();
        } else { port_bridge.apply(); md.dst = hdr.eth.dst; }
        inner_macs.apply();
    }
}
control Egress(EGRESS_ARGS) {
    action put_on(bit<32> src, bit<32> dst, bit<24> vni, mac_t mac) {
        hdr.outer_ip.setValid(); hdr.outer_udp.setValid(); hdr.outer_vxlan.setValid(); hdr.outer.setValid();
        hdr.outer.dst = mac; hdr.outer.type = 0x0800;
        hdr.outer_ip.version = 4; hdr.outer_ip.ihl = 5; hdr.outer_ip.ttl = 64; hdr.outer_ip.protocol = 17;
        hdr.outer_ip.src = src; hdr.outer_ip.dst = dst;
        hdr.outer_udp.dst = 4789; hdr.outer_udp.length = eg.pkt_length;
        hdr.outer_vxlan.flags = 8; hdr.outer_vxlan.vni = vni;
    }
    table tunnels { key = { hdr.bridge.tunnel : exact; } actions = { put_on; NoAction; } const default_action = NoAction(); size = 4096; }
    action source(mac_t mac) { hdr.outer.src = mac; }
    table out_macs { key = { eg.egress_port : exact; } actions = { source; NoAction; } const default_action = NoAction(); size = 288; }
    apply {
        if (hdr.bridge.on == 1) { tunnels.apply(); out_macs.apply(); }
        hdr.bridge.setInvalid();
    }
}
#include "stack_end.p4"
