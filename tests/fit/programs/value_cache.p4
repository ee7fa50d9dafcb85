// A cache of values in the switch: keys of 16 bytes, values of 32, a bit that says whether the value is there, how often each key was
// asked for, and a sketch of the keys that were not found.
#include "architecture.p4"
header query_t { bit<8> op; bit<8> flags; bit<16> seq; bit<128> key; }
header value_t { bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7; }
struct headers_t { ethernet_t eth; ipv4_t ip; udp_t udp; query_t query; value_t value; }
struct metadata_t { bit<16> slot; bit<1> there; bit<16> row0; bit<16> row1; bit<32> least; bit<32> second; }
struct hot_t { bit<128> key; bit<32> count; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition select(hdr.ip.protocol) { 17 : udp; default : accept; } }
    state udp { pkt.extract(hdr.udp); transition select(hdr.udp.dst) { 50000 : query; default : accept; } }
    state query { pkt.extract(hdr.query); transition select(hdr.query.op) { 2 : value; default : accept; } }
    state value { pkt.extract(hdr.value); transition accept; }
}
#define VALUE(N) \
    Register<bit<32>, bit<16>>(32768) value##N; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(value##N) read##N = { void apply(inout bit<32> v, out bit<32> r) { r = v; } }; \
    RegisterAction<bit<32>, bit<16>, bit<32>>(value##N) write##N = { void apply(inout bit<32> v) { v = hdr.value.v##N; } }; \
    action get##N() { hdr.value.v##N = read##N.execute(md.slot); } \
    action put##N() { write##N.execute(md.slot); } \
    table at##N { key = { hdr.query.op : exact; md.there : exact; } actions = { get##N; put##N; NoAction; } \
        const default_action = NoAction(); const entries = { (1, 1) : get##N(); (2, 0) : put##N(); (2, 1) : put##N(); } size = 3; }
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash0;
    Hash<bit<16>>(HashAlgorithm_t.CRC32) hash1;
    action slot(bit<16> n) { md.slot = n; }
    table keys { key = { hdr.query.key : exact; } actions = { slot; NoAction; } const default_action = NoAction(); size = 32768; }
    Register<bit<1>, bit<16>>(32768) present;
    RegisterAction<bit<1>, bit<16>, bit<1>>(present) look = { void apply(inout bit<1> v, out bit<1> r) { r = v; } };
    RegisterAction<bit<1>, bit<16>, bit<1>>(present) fill = { void apply(inout bit<1> v, out bit<1> r) { v = 1; r = 1; } };
    RegisterAction<bit<1>, bit<16>, bit<1>>(present) empty = { void apply(inout bit<1> v, out bit<1> r) { v = 0; r = 0; } };
    action do_look() { md.there = look.execute(md.slot); }
    action do_fill() { md.there = fill.execute(md.slot); }
    action do_empty() { md.there = empty.execute(md.slot); }
    table presence { key = { hdr.query.op : exact; } actions = { do_look; do_fill; do_empty; NoAction; } const default_action = NoAction();
        const entries = { 1 : do_look(); 2 : do_fill(); 3 : do_empty(); } size = 4; }
    Counter<bit<32>, bit<16>>(32768, CounterType_t.PACKETS) asked;
    VALUE(0) VALUE(1) VALUE(2) VALUE(3) VALUE(4) VALUE(5) VALUE(6) VALUE(7)
    Register<bit<32>, bit<16>>(65536) misses0;
    RegisterAction<bit<32>, bit<16>, bit<32>>(misses0) miss0 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    Register<bit<32>, bit<16>>(65536) misses1;
    RegisterAction<bit<32>, bit<16>, bit<32>>(misses1) miss1 = { void apply(inout bit<32> v, out bit<32> r) { v = v |+| 1; r = v; } };
    action count0() { md.least = miss0.execute(md.row0); }
    action count1() { md.second = miss1.execute(md.row1); }
    action least() { md.least = min(md.least, md.second); }
    action hot() { dprsr.digest_type = 1; }
    table threshold { key = { md.least : exact; } actions = { hot; NoAction; } const default_action = NoAction(); size = 16; }
    action answer() {
        bit<32> address = hdr.ip.src;
        hdr.ip.src = hdr.ip.dst;
        hdr.ip.dst = address;
        bit<16> port = hdr.udp.src;
        hdr.udp.src = hdr.udp.dst;
        hdr.udp.dst = port;
        hdr.value.setValid();
        hdr.query.flags = 1;
        tm.ucast_egress_port = ig.ingress_port;
    }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 1024; }
    apply {
        if (hdr.query.isValid()) {
            if (keys.apply().hit) {
                presence.apply();
                asked.count(md.slot);
                at0.apply(); at1.apply(); at2.apply(); at3.apply(); at4.apply(); at5.apply(); at6.apply(); at7.apply();
                if (hdr.query.op == 1 && md.there == 1) { answer(); } else { routes.apply(); }
            } else {
                md.row0 = hash0.get({ hdr.query.key });
                md.row1 = hash1.get({ hdr.query.key });
                count0();
                count1();
                least();
                threshold.apply();
                routes.apply();
            }
        } else {
            routes.apply();
        }
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Digest<hot_t>() hot;
    apply {
        if (dprsr.digest_type == 1) { hot.pack({ hdr.query.key, md.least }); }
        pkt.emit(hdr);
    }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
