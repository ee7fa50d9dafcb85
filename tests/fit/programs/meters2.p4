// Two meters by port, whose colours decide.
#define METADATA bit<8> c0; bit<8> c1;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    Meter<bit<9>>(512, MeterType_t.BYTES) m0;
    Meter<bit<9>>(512, MeterType_t.PACKETS) m1;
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        md.c0 = m0.execute(ig.ingress_port);
        md.c1 = m1.execute(ig.ingress_port);
        if (md.c0 == 3) { drop(); } else if (md.c1 == 3) { drop(); } else { send(1); }
    }
}
#include "frame_end.p4"
