// A table with 40 actions.
#include "frame.p4"

control Ingress(INGRESS_ARGS) {
    action a0() { hdr.words.w0 = 1000; }
    action a1() { hdr.words.w1 = 1001; }
    action a2() { hdr.words.w2 = 1002; }
    action a3() { hdr.words.w3 = 1003; }
    action a4() { hdr.words.w4 = 1004; }
    action a5() { hdr.words.w5 = 1005; }
    action a6() { hdr.words.w6 = 1006; }
    action a7() { hdr.words.w7 = 1007; }
    action a8() { hdr.words.w0 = 1008; }
    action a9() { hdr.words.w1 = 1009; }
    action a10() { hdr.words.w2 = 1010; }
    action a11() { hdr.words.w3 = 1011; }
    action a12() { hdr.words.w4 = 1012; }
    action a13() { hdr.words.w5 = 1013; }
    action a14() { hdr.words.w6 = 1014; }
    action a15() { hdr.words.w7 = 1015; }
    action a16() { hdr.words.w0 = 1016; }
    action a17() { hdr.words.w1 = 1017; }
    action a18() { hdr.words.w2 = 1018; }
    action a19() { hdr.words.w3 = 1019; }
    action a20() { hdr.words.w4 = 1020; }
    action a21() { hdr.words.w5 = 1021; }
    action a22() { hdr.words.w6 = 1022; }
    action a23() { hdr.words.w7 = 1023; }
    action a24() { hdr.words.w0 = 1024; }
    action a25() { hdr.words.w1 = 1025; }
    action a26() { hdr.words.w2 = 1026; }
    action a27() { hdr.words.w3 = 1027; }
    action a28() { hdr.words.w4 = 1028; }
    action a29() { hdr.words.w5 = 1029; }
    action a30() { hdr.words.w6 = 1030; }
    action a31() { hdr.words.w7 = 1031; }
    action a32() { hdr.words.w0 = 1032; }
    action a33() { hdr.words.w1 = 1033; }
    action a34() { hdr.words.w2 = 1034; }
    action a35() { hdr.words.w3 = 1035; }
    action a36() { hdr.words.w4 = 1036; }
    action a37() { hdr.words.w5 = 1037; }
    action a38() { hdr.words.w6 = 1038; }
    action a39() { hdr.words.w7 = 1039; }
    table choice { key = { hdr.ports.src : exact; } actions = { a0; a1; a2; a3; a4; a5; a6; a7; a8; a9; a10; a11; a12; a13; a14; a15; a16; a17; a18; a19; a20; a21; a22; a23; a24; a25; a26; a27; a28; a29; a30; a31; a32; a33; a34; a35; a36; a37; a38; a39; NoAction; } const default_action = NoAction(); size = 1024; }
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    apply {
        choice.apply();
        send(1);
    }
}
#include "frame_end.p4"
