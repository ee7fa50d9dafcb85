// A learning bridge with VLANs: 65,536 addresses, digests, floods.
#define METADATA bit<12> vid;
#include "stack.p4"

struct learn_t { mac_t src; bit<12> vid; PortId_t port; }
control Ingress(INGRESS_ARGS) {
    action set_vlan(bit<12> vid) { md.vid = vid; }
    table port_vlan { key = { ig.ingress_port : exact; hdr.vlan.isValid() : exact; hdr.vlan.vid : ternary; } actions = { set_vlan; NoAction; } const default_action = NoAction(); size = 1024; }
    action known() { }
    action learn() { dprsr.digest_type = 1; }
    table sources { key = { md.vid : exact; hdr.eth.src : exact; } actions = { known; learn; } const default_action = learn(); size = 65536; idle_timeout = true; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    action flood(bit<16> group) { tm.mcast_grp_a = group; tm.level2_exclusion_id = ig.ingress_port; }
    action drop() { dprsr.drop_ctl = 1; }
    table destinations { key = { md.vid : exact; hdr.eth.dst : exact; } actions = { forward; NoAction; } const default_action = NoAction(); size = 65536; }
    table floods { key = { md.vid : exact; } actions = { flood; drop; } const default_action = drop(); size = 4096; }
    apply {
        port_vlan.apply();
        sources.apply();
        if (!destinations.apply().hit) { floods.apply(); }
    }
}
#include "stack_end.p4"
