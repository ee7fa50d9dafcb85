// A TNA program with one of each kind of entity that P4Runtime knows.
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header mirror_t { bit<16> port; }
struct headers_t { mirror_t mirror; ethernet_t ethernet; }
struct metadata_t { }
struct pair_t { bit<16> first; bit<16> second; }
struct learned_t { bit<48> address; PortId_t port; }

parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
                     out ingress_intrinsic_metadata_t ig) {
    value_set<bit<16>>(4) known;
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(h.ethernet);
        transition select(h.ethernet.type) { known : noted; default : accept; }
    }
    state noted { h.ethernet.type = 0; transition accept; }
}

control Ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
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
    ActionProfile(32) members;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionSelector(members, spread, SelectorMode_t.FAIR, 8, 4) groups;
    action send(PortId_t port) { tm.ucast_egress_port = port; hits.count(); rate.execute(); }
    action flood(MulticastGroupId_t group) { tm.mcast_grp_a = group; hits.count(); }
    table macs {
        key = { h.ethernet.dst : exact @name("dst"); }
        actions = { send; flood; @defaultonly NoAction; }
        const default_action = NoAction;
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
    apply {
        per_port.count(ig.ingress_port);
        police.execute(2);
        step.execute(3);
        if (!macs.apply().hit) { balanced.apply(); }
        dprsr.digest_type = 1;
        dprsr.mirror_type = 1;
    }
}

control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr,
                        in ingress_intrinsic_metadata_t ig) {
    Digest<learned_t>(1) learned;
    Mirror(1) mirror;
    apply {
        learned.pack({ h.ethernet.src, ig.ingress_port });
        mirror.emit<mirror_t>(10w5, { (bit<16>) ig.ingress_port });
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
