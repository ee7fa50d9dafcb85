// A TNA program with one of each kind of table that BFRuntime knows.
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct port_metadata_t { bit<9> group; bit<7> label; bit<16> vlan; }
struct metadata_t { port_metadata_t port; }
struct pair_t { bit<16> first; bit<16> second; }
struct learned_t { bit<48> address; PortId_t port; }

parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
                     out ingress_intrinsic_metadata_t ig_intr_md) {
    value_set<bit<16>>(4) known;
    state start {
        pkt.extract(ig_intr_md);
        m.port = port_metadata_unpack<port_metadata_t>(pkt);
        pkt.extract(h.ethernet);
        transition select(h.ethernet.type) { known : noted; default : accept; }
    }
    state noted { m.port.vlan = 0xfff; transition accept; }
}

control Ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig_intr_md,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS_AND_BYTES) per_port;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) hits;
    DirectMeter(MeterType_t.BYTES) rate;
    Meter<bit<4>>(16, MeterType_t.PACKETS) police;
    Register<pair_t, bit<4>>(16) pairs;
    RegisterAction<pair_t, bit<4>, bit<16>>(pairs) step = {
        void apply(inout pair_t value) { value.second = value.second + 1; }
    };
    Register<bit<32>, bit<4>>(16) totals;
    RegisterAction<bit<32>, bit<4>, bit<32>>(totals) count = {
        void apply(inout bit<32> value) { value = value + 1; }
    };
    Hash<bit<16>>(HashAlgorithm_t.XOR16) digest;
    Lpf<bit<16>, bit<4>>(16) average;
    Wred<bit<16>, bit<4>>(16, 1, 0) early;
    ActionProfile(32) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionSelector(members, spread, SelectorMode_t.FAIR, 8, 4) groups;
    action send(PortId_t port) { tm.ucast_egress_port = port; hits.count(); rate.execute(); }
    action flood(MulticastGroupId_t group) { tm.mcast_grp_a = group; hits.count(); }
    table macs {
        key = { h.ethernet.dst : exact; }
        actions = { send; flood; @defaultonly NoAction; }
        default_action = NoAction;
        counters = hits;
        meters = rate;
        idle_timeout = true;
        size = 256;
    }
    action to(PortId_t port) { tm.ucast_egress_port = port; }
    table balanced {
        key = { h.ethernet.type : exact @name("type"); h.ethernet.src : selector; }
        actions = { to; NoAction; }
        implementation = groups;
    }
    action mark(bit<16> type) { h.ethernet.type = type; }
    table filters {
        key = { h.ethernet.src : ternary @name("src"); m.port.vlan : range @name("vlan");
                h.ethernet.dst : lpm @name("dst"); }
        actions = { mark; NoAction; }
        size = 16;
    }
    DirectLpf<bit<16>>() smooth;
    action smoothen() { h.ethernet.type = smooth.execute(h.ethernet.dst[15:0]); }
    table smoothed {
        key = { h.ethernet.src : exact @name("src"); }
        actions = { smoothen; NoAction; }
        filters = smooth;
        size = 8;
    }
    @dynamic_table_key_masks(1)
    table masked {
        key = { h.ethernet.src : exact @name("src"); m.port.label : exact @name("label"); }
        actions = { mark; NoAction; }
        const default_action = NoAction;
        size = 8;
    }
    apply {
        per_port.count(ig_intr_md.ingress_port);
        police.execute(0);
        step.execute(3);
        count.execute(5);
        if (!macs.apply().hit) { balanced.apply(); }
        filters.apply();
        if (h.ethernet.type == 0xeeee) { h.ethernet.type = digest.get({ h.ethernet.dst }); }
        if (h.ethernet.type == 0xaaaa) { h.ethernet.type = average.execute(h.ethernet.dst[15:0], 1); }
        if (h.ethernet.type == 0xdddd) { masked.apply(); }
        if (h.ethernet.type == 0xcccc) { smoothed.apply(); }
        if (h.ethernet.type == 0xbbbb) {
            h.ethernet.type = (bit<16>) early.execute(h.ethernet.dst[15:0], 1);
        }
        dprsr.digest_type = 1;
    }
}

control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr,
                        in ingress_intrinsic_metadata_t ig_intr_md) {
    Digest<learned_t>(1) learned;
    apply {
        learned.pack({ h.ethernet.src, ig_intr_md.ingress_port });
        pkt.emit(h.ethernet);
    }
}

parser EgressParser(packet_in pkt, out headers_t h, out metadata_t m,
                    out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t eg) {
    apply { }
}
control EgressDeparser(packet_out pkt, inout headers_t h, in metadata_t m) { apply { } }

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
         EgressDeparser()) pipe;
Switch(pipe) main;
