// A packet goes round until its counter is 0; each time a register adds.
#define MORE_TYPES header work_t { bit<8> left; bit<6> pad; bit<10> row; bit<32> number; bit<32> sum; }
#define MORE_LAST work_t work;
#define MORE_UDP_PORTS 7000 : work;
#define MORE_STATES state work { pkt.extract(hdr.work); transition accept; }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Register<bit<32>, bit<10>>(1024) sums;
    RegisterAction<bit<32>, bit<10>, bit<32>>(sums) add = { void apply(inout bit<32> v, out bit<32> r) { v = v + hdr.work.number; r = v; } };
    action again() { tm.ucast_egress_port = 68; hdr.work.left = hdr.work.left - 1; }
    table outputs { key = { hdr.ip.dst : exact; } actions = { send; drop; } const default_action = drop(); size = 1024; }
    apply {
        if (hdr.work.isValid()) {
            hdr.work.sum = add.execute(hdr.work.row);
            if (hdr.work.left != 0) { again(); } else { outputs.apply(); }
        } else { drop(); }
    }
}
#include "stack_end.p4"
