// A program as a translator from P4_14 writes it: names and types given everywhere, `@name(".x")`,
// table keys by their old names, an action profile, headers in a stack.
#include "core.p4"
#include "v1model.p4"
@pkginfo(name="legacy", version="1.0", contact="someone@example.com")
@p4runtime_translation_mappings({ {"a", 1}, {"b", 2} }) const bit<8> unused = 8w1;

@name("ingress_metadata_t") struct ingress_metadata_t {
    @name(".vlan")
    bit<16> vlan;
    bit<5>  flags;
}
@name("ethernet_t") header ethernet_t {
    bit<48> dstAddr;
    bit<48> srcAddr;
    bit<16> etherType;
}
@name("vlan_tag_t") header vlan_tag_t {
    bit<3>  pcp;
    bit<1>  cfi;
    bit<12> vid;
    bit<16> etherType;
}
struct metadata {
    @name(".ingress_metadata")
    ingress_metadata_t ingress_metadata;
}
struct headers {
    @name(".ethernet")
    ethernet_t    ethernet;
    @name(".vlan_tag_")
    vlan_tag_t[2] vlan_tag_;
}

parser ParserImpl(packet_in packet, out headers hdr, inout metadata meta,
                  inout standard_metadata_t standard_metadata) {
    @name(".parse_ethernet") state parse_ethernet {
        packet.extract<ethernet_t>(hdr.ethernet);
        transition select(hdr.ethernet.etherType) {
            16w0x8100: parse_vlan;
            16w0x9100 &&& 16w0xff00: parse_vlan;
            default: accept;
        }
    }
    @name(".parse_vlan") state parse_vlan {
        packet.extract<vlan_tag_t>(hdr.vlan_tag_.next);
        transition select(hdr.vlan_tag_.last.etherType) {
            16w0x8100: parse_vlan;
            default: accept;
        }
    }
    @name(".start") state start {
        transition parse_ethernet;
    }
}

@name(".profile") @mode("fair") action_profile(32w128) profile;
@name(".seen") counter(32w1024, CounterType.packets_and_bytes) seen;

control ingress(inout headers hdr, inout metadata meta,
                inout standard_metadata_t standard_metadata) {
    @name(".set_port") action set_port(@name("port") bit<9> port_1, bit<16> index) {
        standard_metadata.egress_spec = port_1;
        seen.count((bit<32>)index);
        meta.ingress_metadata.vlan = (bit<16>)hdr.vlan_tag_[0].vid;
    }
    @name("._drop") action _drop() {
        mark_to_drop();
    }
    @name(".forward") table forward {
        actions = {
            set_port();
            _drop();
            @defaultonly NoAction();
        }
        key = {
            hdr.ethernet.dstAddr       : exact @name("ethernet.dstAddr") ;
            hdr.vlan_tag_[1].isValid() : exact @name("vlan_tag_[1].$valid$") ;
        }
        size = 512;
        default_action = NoAction();
    }
    @name(".pop") table pop {
        actions = {
            _drop();
            @defaultonly NoAction();
        }
        key = {
            meta.ingress_metadata.vlan: range @name("ingress_metadata.vlan") ;
        }
        default_action = NoAction();
        @name(".profile") implementation = profile;
    }
    apply {
        if (forward.apply().hit) {
            pop.apply();
            if (meta.ingress_metadata.vlan == 16w5) {
                hdr.ethernet.etherType = hdr.vlan_tag_[0].etherType;
                hdr.vlan_tag_.pop_front(1);
            }
        }
    }
}

control egress(inout headers hdr, inout metadata meta,
               inout standard_metadata_t standard_metadata) {
    @name(".rewrite") action rewrite(bit<48> smac) {
        hdr.ethernet.srcAddr = smac;
    }
    @name(".send_frame") table send_frame {
        actions = {
            rewrite();
            @defaultonly NoAction();
        }
        key = {
            standard_metadata.egress_port: exact @name("standard_metadata.egress_port") ;
        }
        size = 256;
        default_action = NoAction();
    }
    apply {
        send_frame.apply();
    }
}

control DeparserImpl(packet_out packet, in headers hdr) {
    apply {
        packet.emit<ethernet_t>(hdr.ethernet);
        packet.emit<vlan_tag_t[2]>(hdr.vlan_tag_);
    }
}

control verifyChecksum(inout headers hdr, inout metadata meta) {
    apply {
    }
}

control computeChecksum(inout headers hdr, inout metadata meta) {
    apply {
    }
}

V1Switch<headers, metadata>(ParserImpl(), verifyChecksum(), ingress(), egress(), computeChecksum(),
                            DeparserImpl()) main;
