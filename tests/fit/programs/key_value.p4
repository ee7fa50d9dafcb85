// A cache of values of 64 bytes in sixteen registers.
#define METADATA bit<14> row; bit<1> hit; bit<8> ok;
#define MORE_TYPES header kv_t { bit<8> op; bit<64> key; } header value_t { bit<32> w0; bit<32> w1; bit<32> w2; bit<32> w3; bit<32> w4; bit<32> w5; bit<32> w6; bit<32> w7; bit<32> w8; bit<32> w9; bit<32> w10; bit<32> w11; bit<32> w12; bit<32> w13; bit<32> w14; bit<32> w15; }
#define MORE_LAST kv_t kv; value_t value;
#define MORE_UDP_PORTS 5000 : kv;
#define MORE_STATES state kv { pkt.extract(hdr.kv); pkt.extract(hdr.value); transition accept; }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    action found(bit<14> row) { md.row = row; md.hit = 1; }
    table keys { key = { hdr.kv.key : exact; } actions = { found; NoAction; } const default_action = NoAction(); size = 16384; }
    Register<bit<8>, bit<14>>(16384) valid;
    RegisterAction<bit<8>, bit<14>, bit<8>>(valid) is_valid = { void apply(inout bit<8> v, out bit<8> r) { r = v; } };
    RegisterAction<bit<8>, bit<14>, bit<8>>(valid) set_valid = { void apply(inout bit<8> v, out bit<8> r) { v = 1; r = 1; } };
    Register<bit<32>, bit<14>>(16384) value0;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value0) read0 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value0) write0 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w0; r = v; } };
    action get0() { hdr.value.w0 = read0.execute(md.row); }
    action put0() { write0.execute(md.row); }
    table data0 { key = { hdr.kv.op : exact; } actions = { get0; put0; NoAction; } const default_action = NoAction(); const entries = { 1 : get0(); 2 : put0(); } }
    Register<bit<32>, bit<14>>(16384) value1;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value1) read1 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value1) write1 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w1; r = v; } };
    action get1() { hdr.value.w1 = read1.execute(md.row); }
    action put1() { write1.execute(md.row); }
    table data1 { key = { hdr.kv.op : exact; } actions = { get1; put1; NoAction; } const default_action = NoAction(); const entries = { 1 : get1(); 2 : put1(); } }
    Register<bit<32>, bit<14>>(16384) value2;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value2) read2 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value2) write2 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w2; r = v; } };
    action get2() { hdr.value.w2 = read2.execute(md.row); }
    action put2() { write2.execute(md.row); }
    table data2 { key = { hdr.kv.op : exact; } actions = { get2; put2; NoAction; } const default_action = NoAction(); const entries = { 1 : get2(); 2 : put2(); } }
    Register<bit<32>, bit<14>>(16384) value3;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value3) read3 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value3) write3 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w3; r = v; } };
    action get3() { hdr.value.w3 = read3.execute(md.row); }
    action put3() { write3.execute(md.row); }
    table data3 { key = { hdr.kv.op : exact; } actions = { get3; put3; NoAction; } const default_action = NoAction(); const entries = { 1 : get3(); 2 : put3(); } }
    Register<bit<32>, bit<14>>(16384) value4;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value4) read4 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value4) write4 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w4; r = v; } };
    action get4() { hdr.value.w4 = read4.execute(md.row); }
    action put4() { write4.execute(md.row); }
    table data4 { key = { hdr.kv.op : exact; } actions = { get4; put4; NoAction; } const default_action = NoAction(); const entries = { 1 : get4(); 2 : put4(); } }
    Register<bit<32>, bit<14>>(16384) value5;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value5) read5 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value5) write5 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w5; r = v; } };
    action get5() { hdr.value.w5 = read5.execute(md.row); }
    action put5() { write5.execute(md.row); }
    table data5 { key = { hdr.kv.op : exact; } actions = { get5; put5; NoAction; } const default_action = NoAction(); const entries = { 1 : get5(); 2 : put5(); } }
    Register<bit<32>, bit<14>>(16384) value6;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value6) read6 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value6) write6 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w6; r = v; } };
    action get6() { hdr.value.w6 = read6.execute(md.row); }
    action put6() { write6.execute(md.row); }
    table data6 { key = { hdr.kv.op : exact; } actions = { get6; put6; NoAction; } const default_action = NoAction(); const entries = { 1 : get6(); 2 : put6(); } }
    Register<bit<32>, bit<14>>(16384) value7;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value7) read7 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value7) write7 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w7; r = v; } };
    action get7() { hdr.value.w7 = read7.execute(md.row); }
    action put7() { write7.execute(md.row); }
    table data7 { key = { hdr.kv.op : exact; } actions = { get7; put7; NoAction; } const default_action = NoAction(); const entries = { 1 : get7(); 2 : put7(); } }
    Register<bit<32>, bit<14>>(16384) value8;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value8) read8 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value8) write8 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w8; r = v; } };
    action get8() { hdr.value.w8 = read8.execute(md.row); }
    action put8() { write8.execute(md.row); }
    table data8 { key = { hdr.kv.op : exact; } actions = { get8; put8; NoAction; } const default_action = NoAction(); const entries = { 1 : get8(); 2 : put8(); } }
    Register<bit<32>, bit<14>>(16384) value9;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value9) read9 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value9) write9 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w9; r = v; } };
    action get9() { hdr.value.w9 = read9.execute(md.row); }
    action put9() { write9.execute(md.row); }
    table data9 { key = { hdr.kv.op : exact; } actions = { get9; put9; NoAction; } const default_action = NoAction(); const entries = { 1 : get9(); 2 : put9(); } }
    Register<bit<32>, bit<14>>(16384) value10;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value10) read10 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value10) write10 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w10; r = v; } };
    action get10() { hdr.value.w10 = read10.execute(md.row); }
    action put10() { write10.execute(md.row); }
    table data10 { key = { hdr.kv.op : exact; } actions = { get10; put10; NoAction; } const default_action = NoAction(); const entries = { 1 : get10(); 2 : put10(); } }
    Register<bit<32>, bit<14>>(16384) value11;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value11) read11 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value11) write11 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w11; r = v; } };
    action get11() { hdr.value.w11 = read11.execute(md.row); }
    action put11() { write11.execute(md.row); }
    table data11 { key = { hdr.kv.op : exact; } actions = { get11; put11; NoAction; } const default_action = NoAction(); const entries = { 1 : get11(); 2 : put11(); } }
    Register<bit<32>, bit<14>>(16384) value12;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value12) read12 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value12) write12 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w12; r = v; } };
    action get12() { hdr.value.w12 = read12.execute(md.row); }
    action put12() { write12.execute(md.row); }
    table data12 { key = { hdr.kv.op : exact; } actions = { get12; put12; NoAction; } const default_action = NoAction(); const entries = { 1 : get12(); 2 : put12(); } }
    Register<bit<32>, bit<14>>(16384) value13;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value13) read13 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value13) write13 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w13; r = v; } };
    action get13() { hdr.value.w13 = read13.execute(md.row); }
    action put13() { write13.execute(md.row); }
    table data13 { key = { hdr.kv.op : exact; } actions = { get13; put13; NoAction; } const default_action = NoAction(); const entries = { 1 : get13(); 2 : put13(); } }
    Register<bit<32>, bit<14>>(16384) value14;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value14) read14 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value14) write14 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w14; r = v; } };
    action get14() { hdr.value.w14 = read14.execute(md.row); }
    action put14() { write14.execute(md.row); }
    table data14 { key = { hdr.kv.op : exact; } actions = { get14; put14; NoAction; } const default_action = NoAction(); const entries = { 1 : get14(); 2 : put14(); } }
    Register<bit<32>, bit<14>>(16384) value15;
    RegisterAction<bit<32>, bit<14>, bit<32>>(value15) read15 = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<14>, bit<32>>(value15) write15 = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.value.w15; r = v; } };
    action get15() { hdr.value.w15 = read15.execute(md.row); }
    action put15() { write15.execute(md.row); }
    table data15 { key = { hdr.kv.op : exact; } actions = { get15; put15; NoAction; } const default_action = NoAction(); const entries = { 1 : get15(); 2 : put15(); } }

    apply {
        if (hdr.kv.isValid()) {
            keys.apply();
            if (md.hit == 1) {
                if (hdr.kv.op == 1) { md.ok = is_valid.execute(md.row); } else { md.ok = set_valid.execute(md.row); }
                if (md.ok == 1) { data0.apply(); data1.apply(); data2.apply(); data3.apply(); data4.apply(); data5.apply(); data6.apply(); data7.apply(); data8.apply(); data9.apply(); data10.apply(); data11.apply(); data12.apply(); data13.apply(); data14.apply(); data15.apply(); }
            }
        }
        send(1);
    }
}
#include "stack_end.p4"
