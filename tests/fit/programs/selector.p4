// A selector that spreads flows over members.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) h;
    ActionProfile(1024) members;
    ActionSelector(members, h, SelectorMode_t.FAIR, 64, 128) groups;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    table spread { key = { hdr.ip.dst : exact; hdr.ip.src : selector; hdr.ports.src : selector; } actions = { send; drop; } size = 1024; implementation = groups; }
    apply {
        spread.apply();
    }
}
#include "frame_end.p4"
