// As p4c translates P4_14: global @name, underscores, clone3 and resubmit with data, #ifdef.
#include <core.p4>
#define V1MODEL_VERSION 20180101
#include <v1model.p4>
#ifdef WITH_EXTRA
#error not defined here
#endif

struct intrinsic_metadata_t { @name(".lf_field_list") bit<32> lf_field_list; bit<16> mcast_grp; }
struct mymeta_t { @name(".f1") bit<8> f1; bit<16> f2; }
@name("ethernet_t") header ethernet_t_0 { bit<48> dst; bit<48> src; bit<16> type_; }
header ipv4_t { bit<4> version; bit<4> ihl; bit<24> rest; @name("options") varbit<320> options; }

struct metadata {
    @name(".intrinsic_metadata") intrinsic_metadata_t intrinsic_metadata;
    @pa_solitary("ingress", "mymeta.f1") @name(".mymeta") mymeta_t mymeta;
}
struct headers {
    @name(".ethernet") ethernet_t_0 ethernet;
    @name(".ipv4") ipv4_t ipv4;
    @name(".vlan_tag") ethernet_t_0[2] vlan_tag;
}

parser ParserImpl(packet_in packet, out headers hdr, inout metadata meta,
                  inout standard_metadata_t standard_metadata) {
    @name(".parse_ethernet") state parse_ethernet {
        packet.extract<ethernet_t_0>(hdr.ethernet);
        transition select((packet.lookahead<bit<16>>())[15:0], hdr.ethernet.type_[11:0]) {
            (16w0x8100 &&& 16w0xefff, default): parse_vlan;
            (_, 12w0x800): parse_ipv4;
            default: accept;
        }
    }
    @name(".parse_vlan") state parse_vlan {
        packet.extract(hdr.vlan_tag.next);
        transition select(hdr.vlan_tag.last.type_) { 16w0x8100: parse_vlan; default: accept; }
    }
    @name("parse_ipv4") state parse_ipv4 {
        packet.extract(hdr.ipv4,
            (bit<32>)((bit<32>)(packet.lookahead<bit<8>>())[3:0] * 32w4 * 32w8 - 32w160));
        transition accept;
    }
    @name(".start") state start { transition parse_ethernet; }
}

@name(".set_f1") action set_f1() { }
@name(".cntDum") counter(32w70000, CounterType.packets) cntDum;
@name("act_prof") @mode("fair") action_selector(HashAlgorithm.crc16, 32w1024, 32w14) act_prof;
@name(".rg") register<bit<16>>(32w16) rg;

control ingress(inout headers hdr, inout metadata meta,
                inout standard_metadata_t standard_metadata) {
    @name(".act") action act(@name("idx") bit<18> idx) {
        standard_metadata.egress_spec = 9w0;
        cntDum.count((bit<32>)idx);
        rg.write((bit<32>)32w1, (bit<16>)meta.mymeta.f2);
    }
    @name("._drop") action _drop() { mark_to_drop(); }
    @name("._clone") action _clone(bit<32> mirror_id) {
        clone3<tuple<standard_metadata_t, metadata>>(CloneType.I2E, mirror_id,
            { standard_metadata, meta });
        clone3(CloneType.E2E, (bit<32>)32w5, { meta.mymeta });
    }
    @name("._resubmit") action _resubmit() {
        resubmit({ standard_metadata, meta.mymeta });
        recirculate<tuple<standard_metadata_t, mymeta_t>>({ standard_metadata, meta.mymeta });
        digest<mymeta_t>(32w1024, { meta.mymeta.f1, meta.mymeta.f2 });
    }
    @pragma ternary 1
    @name(".tab1") table tab1 {
        actions = { act; set_f1; _drop; _clone; _resubmit; @defaultonly NoAction; }
        key = {
            hdr.ethernet.dst: exact @name("ethernet.dst");
            hdr.ipv4.isValid(): exact @name("ipv4.$valid$");
            hdr.vlan_tag[0].src: ternary @name("vlan_tag[0].src");
            meta.mymeta.f1[7:4]: ternary @name("mymeta.f1[7:4]");
        }
        size = 70000;
        default_action = NoAction();
    }
    @name(".selected") table selected {
        key = { meta.mymeta.f1: exact; hdr.ethernet.src: selector; hdr.ethernet.dst: selector; }
        actions = { _drop; @tableonly act; NoAction; }
        const default_action = NoAction();
        implementation = act_prof;
    }
    @hidden table hidden_one { actions = { @hidden _drop; } const default_action = _drop(); }
    apply {
        tab1.apply();
        if (hdr.ethernet.type_ == 16w0 && !(hdr.ipv4.version != 4w4) || meta.mymeta.f1 < 8w3)
            selected.apply();
        else
            hidden_one.apply();
    }
}
control egress(inout headers hdr, inout metadata meta,
               inout standard_metadata_t standard_metadata) { apply { } }
control DeparserImpl(packet_out packet, in headers hdr) {
    apply {
        packet.emit<ethernet_t_0>(hdr.ethernet);
        packet.emit(hdr.vlan_tag);
        packet.emit(hdr.ipv4);
    }
}
control verifyChecksum(inout headers hdr, inout metadata meta) { apply { } }
control computeChecksum(inout headers hdr, inout metadata meta) { apply { } }
V1Switch(ParserImpl(), verifyChecksum(), ingress(), egress(), computeChecksum(),
         DeparserImpl()) main;
