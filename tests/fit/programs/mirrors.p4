// Packets are mirrored in ingress and egress, with a header.
#define EGRESS
#define MORE_TYPES header mirror_h { bit<16> port; bit<48> time; }
#define METADATA MirrorId_t session; mirror_h mirror;
#define INGRESS_DEPARSER_LOCALS Mirror() mirror;
#define INGRESS_DEPARSER_FIRST if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(md.session, md.mirror); }
#define EGRESS_DEPARSER_LOCALS Mirror() mirror;
#define EGRESS_DEPARSER_FIRST if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(md.session, md.mirror); }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action copy(MirrorId_t session) { dprsr.mirror_type = 1; md.session = session; }
    table samples { key = { ig.ingress_port : exact; hdr.ip.dst : ternary; } actions = { copy; NoAction; } const default_action = NoAction(); size = 512; }
    table outputs { key = { hdr.eth.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 8192; }
    apply { md.mirror.setValid(); md.mirror.port = (bit<16>) ig.ingress_port; md.mirror.time = ig.ingress_mac_tstamp; outputs.apply(); samples.apply(); }
}
control Egress(EGRESS_ARGS) {
    action copy(MirrorId_t session) { dprsr.mirror_type = 1; md.session = session; }
    table congestion { key = { eg.egress_port : exact; eg.deq_qdepth : range; } actions = { copy; NoAction; } const default_action = NoAction(); size = 256; }
    apply { md.mirror.setValid(); md.mirror.port = (bit<16>) eg.egress_port; md.mirror.time = prsr.global_tstamp; congestion.apply(); }
}
#include "stack_end.p4"
