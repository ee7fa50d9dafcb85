// Sixty numbers of 32 bits, computed early and used late.
#define METADATA bit<32> m0; bit<32> m1; bit<32> m2; bit<32> m3; bit<32> m4; bit<32> m5; bit<32> m6; bit<32> m7; bit<32> m8; bit<32> m9; bit<32> m10; bit<32> m11; bit<32> m12; bit<32> m13; bit<32> m14; bit<32> m15; bit<32> m16; bit<32> m17; bit<32> m18; bit<32> m19; bit<32> m20; bit<32> m21; bit<32> m22; bit<32> m23; bit<32> m24; bit<32> m25; bit<32> m26; bit<32> m27; bit<32> m28; bit<32> m29; bit<32> m30; bit<32> m31; bit<32> m32; bit<32> m33; bit<32> m34; bit<32> m35; bit<32> m36; bit<32> m37; bit<32> m38; bit<32> m39; bit<32> m40; bit<32> m41; bit<32> m42; bit<32> m43; bit<32> m44; bit<32> m45; bit<32> m46; bit<32> m47; bit<32> m48; bit<32> m49; bit<32> m50; bit<32> m51; bit<32> m52; bit<32> m53; bit<32> m54; bit<32> m55; bit<32> m56; bit<32> m57; bit<32> m58; bit<32> m59;
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }
    action set0(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m0 = a; md.m1 = b; md.m2 = c; md.m3 = d; }
    table t0 { key = { hdr.ip.src : exact; } actions = { set0; NoAction; } const default_action = NoAction(); size = 512; }
    action set1(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m4 = a; md.m5 = b; md.m6 = c; md.m7 = d; }
    table t1 { key = { hdr.ip.src : exact; } actions = { set1; NoAction; } const default_action = NoAction(); size = 512; }
    action set2(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m8 = a; md.m9 = b; md.m10 = c; md.m11 = d; }
    table t2 { key = { hdr.ip.src : exact; } actions = { set2; NoAction; } const default_action = NoAction(); size = 512; }
    action set3(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m12 = a; md.m13 = b; md.m14 = c; md.m15 = d; }
    table t3 { key = { hdr.ip.src : exact; } actions = { set3; NoAction; } const default_action = NoAction(); size = 512; }
    action set4(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m16 = a; md.m17 = b; md.m18 = c; md.m19 = d; }
    table t4 { key = { hdr.ip.src : exact; } actions = { set4; NoAction; } const default_action = NoAction(); size = 512; }
    action set5(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m20 = a; md.m21 = b; md.m22 = c; md.m23 = d; }
    table t5 { key = { hdr.ip.src : exact; } actions = { set5; NoAction; } const default_action = NoAction(); size = 512; }
    action set6(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m24 = a; md.m25 = b; md.m26 = c; md.m27 = d; }
    table t6 { key = { hdr.ip.src : exact; } actions = { set6; NoAction; } const default_action = NoAction(); size = 512; }
    action set7(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m28 = a; md.m29 = b; md.m30 = c; md.m31 = d; }
    table t7 { key = { hdr.ip.src : exact; } actions = { set7; NoAction; } const default_action = NoAction(); size = 512; }
    action set8(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m32 = a; md.m33 = b; md.m34 = c; md.m35 = d; }
    table t8 { key = { hdr.ip.src : exact; } actions = { set8; NoAction; } const default_action = NoAction(); size = 512; }
    action set9(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m36 = a; md.m37 = b; md.m38 = c; md.m39 = d; }
    table t9 { key = { hdr.ip.src : exact; } actions = { set9; NoAction; } const default_action = NoAction(); size = 512; }
    action set10(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m40 = a; md.m41 = b; md.m42 = c; md.m43 = d; }
    table t10 { key = { hdr.ip.src : exact; } actions = { set10; NoAction; } const default_action = NoAction(); size = 512; }
    action set11(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m44 = a; md.m45 = b; md.m46 = c; md.m47 = d; }
    table t11 { key = { hdr.ip.src : exact; } actions = { set11; NoAction; } const default_action = NoAction(); size = 512; }
    action set12(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m48 = a; md.m49 = b; md.m50 = c; md.m51 = d; }
    table t12 { key = { hdr.ip.src : exact; } actions = { set12; NoAction; } const default_action = NoAction(); size = 512; }
    action set13(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m52 = a; md.m53 = b; md.m54 = c; md.m55 = d; }
    table t13 { key = { hdr.ip.src : exact; } actions = { set13; NoAction; } const default_action = NoAction(); size = 512; }
    action set14(bit<32> a, bit<32> b, bit<32> c, bit<32> d) { md.m56 = a; md.m57 = b; md.m58 = c; md.m59 = d; }
    table t14 { key = { hdr.ip.src : exact; } actions = { set14; NoAction; } const default_action = NoAction(); size = 512; }
    table u0 { key = { md.m0 : exact; md.m1 : exact; md.m2 : exact; md.m3 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u1 { key = { md.m4 : exact; md.m5 : exact; md.m6 : exact; md.m7 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u2 { key = { md.m8 : exact; md.m9 : exact; md.m10 : exact; md.m11 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u3 { key = { md.m12 : exact; md.m13 : exact; md.m14 : exact; md.m15 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u4 { key = { md.m16 : exact; md.m17 : exact; md.m18 : exact; md.m19 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u5 { key = { md.m20 : exact; md.m21 : exact; md.m22 : exact; md.m23 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u6 { key = { md.m24 : exact; md.m25 : exact; md.m26 : exact; md.m27 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u7 { key = { md.m28 : exact; md.m29 : exact; md.m30 : exact; md.m31 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u8 { key = { md.m32 : exact; md.m33 : exact; md.m34 : exact; md.m35 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u9 { key = { md.m36 : exact; md.m37 : exact; md.m38 : exact; md.m39 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u10 { key = { md.m40 : exact; md.m41 : exact; md.m42 : exact; md.m43 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u11 { key = { md.m44 : exact; md.m45 : exact; md.m46 : exact; md.m47 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u12 { key = { md.m48 : exact; md.m49 : exact; md.m50 : exact; md.m51 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u13 { key = { md.m52 : exact; md.m53 : exact; md.m54 : exact; md.m55 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }
    table u14 { key = { md.m56 : exact; md.m57 : exact; md.m58 : exact; md.m59 : exact; } actions = { send; drop; NoAction; } const default_action = NoAction(); size = 512; }

    apply { t0.apply(); t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); t9.apply(); t10.apply(); t11.apply(); t12.apply(); t13.apply(); t14.apply(); u0.apply(); u1.apply(); u2.apply(); u3.apply(); u4.apply(); u5.apply(); u6.apply(); u7.apply(); u8.apply(); u9.apply(); u10.apply(); u11.apply(); u12.apply(); u13.apply(); u14.apply(); }
}
#include "stack_end.p4"
