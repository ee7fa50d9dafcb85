// A chain of sixteen conditions on one field.
#define METADATA bit<9> k;
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        if (hdr.ports.src == 100) { md.k = 1; }
        else if (hdr.ports.src == 107) { md.k = 2; }
        else if (hdr.ports.src == 114) { md.k = 3; }
        else if (hdr.ports.src == 121) { md.k = 4; }
        else if (hdr.ports.src == 128) { md.k = 5; }
        else if (hdr.ports.src == 135) { md.k = 6; }
        else if (hdr.ports.src == 142) { md.k = 7; }
        else if (hdr.ports.src == 149) { md.k = 8; }
        else if (hdr.ports.src == 156) { md.k = 9; }
        else if (hdr.ports.src == 163) { md.k = 10; }
        else if (hdr.ports.src == 170) { md.k = 11; }
        else if (hdr.ports.src == 177) { md.k = 12; }
        else if (hdr.ports.src == 184) { md.k = 13; }
        else if (hdr.ports.src == 191) { md.k = 14; }
        else if (hdr.ports.src == 198) { md.k = 15; }
        else if (hdr.ports.src == 205) { md.k = 16; }
        send((PortId_t)md.k);
    }
}
#include "frame_end.p4"
