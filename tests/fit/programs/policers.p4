// Meters by port and by flow decide what is marked and dropped.
#define METADATA bit<2> port_colour; bit<2> flow_colour;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Meter<bit<9>>(512, MeterType_t.BYTES) port_rate;
    DirectMeter(MeterType_t.BYTES) flow_rate;
    Counter<bit<32>, bit<11>>(2048, CounterType_t.PACKETS) by_colour;
    action police() { md.flow_colour = (bit<2>) flow_rate.execute(); }
    table flows { key = { hdr.ip.src : exact; hdr.ip.dst : exact; } actions = { police; NoAction; } const default_action = NoAction(); meters = flow_rate; size = 16384; }
    action mark(bit<6> dscp) { hdr.ip.dscp = dscp; }
    table verdicts { key = { md.port_colour : exact; md.flow_colour : exact; } actions = { mark; drop; NoAction; } const default_action = NoAction(); size = 16; }
    table outputs { key = { hdr.eth.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 4096; }
    apply {
        outputs.apply();
        md.port_colour = (bit<2>) port_rate.execute(ig.ingress_port);
        flows.apply();
        verdicts.apply();
        by_colour.count(md.port_colour ++ ig.ingress_port);
    }
}
#include "stack_end.p4"
