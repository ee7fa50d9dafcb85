// Copies of the packet: clone, resubmit, recirculate, digest, multicast, packet-in and packet-out.
#include <core.p4>
#include <v1model.p4>

const bit<8> RECIRC_FL = 1;
const bit<9> CPU_PORT = 255;
const bit<32> BMV2_V1MODEL_INSTANCE_TYPE_INGRESS_CLONE = 1;
#define IS_I2E_CLONE(std_meta) (std_meta.instance_type == BMV2_V1MODEL_INSTANCE_TYPE_INGRESS_CLONE)

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> _pad; }
@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> _pad; }
header ethernet_t { bit<48> dstAddr; bit<48> srcAddr; bit<16> etherType; }

struct learn_t { bit<48> srcAddr; bit<9> ingress_port; }
struct metadata {
    @field_list(RECIRC_FL, 0) bit<8> pass;
    @field_list(0) bit<9> ingress_port;
    learn_t learn;
}
struct headers { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out { packet.extract(hdr.packet_out); transition parse_ethernet; }
    state parse_ethernet { packet.extract(hdr.ethernet); transition accept; }
}
control MyVerifyChecksum(inout headers hdr, inout metadata meta) { apply { } }
control MyIngress(inout headers hdr, inout metadata meta,
                  inout standard_metadata_t standard_metadata) {
    action mac_learn() {
        meta.learn.srcAddr = hdr.ethernet.srcAddr;
        meta.learn.ingress_port = standard_metadata.ingress_port;
        digest<learn_t>(1, meta.learn);
        digest(1, { hdr.ethernet.srcAddr, standard_metadata.ingress_port });
    }
    table smac {
        key = { hdr.ethernet.srcAddr: exact; }
        actions = { mac_learn; NoAction; }
        size = 256;
        default_action = mac_learn;
        support_timeout = true;
    }
    action forward(bit<9> egress_port) { standard_metadata.egress_spec = egress_port; }
    action set_mcast_grp(bit<16> mcast_grp) { standard_metadata.mcast_grp = mcast_grp; }
    table dmac {
        key = { hdr.ethernet.dstAddr: exact; }
        actions = { forward; set_mcast_grp; NoAction; }
        default_action = NoAction;
    }
    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        smac.apply();
        if (!dmac.apply().hit) {
            clone(CloneType.I2E, 32w250);
            clone_preserving_field_list(CloneType.I2E, 250, RECIRC_FL);
            standard_metadata.mcast_grp = 1;
        }
        if (meta.pass == 0) {
            meta.pass = meta.pass + 1;
            resubmit_preserving_field_list(RECIRC_FL);
        }
    }
}
control MyEgress(inout headers hdr, inout metadata meta,
                 inout standard_metadata_t standard_metadata) {
    apply {
        if (IS_I2E_CLONE(standard_metadata)) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            truncate((bit<32>)64);
        } else if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        } else if (standard_metadata.egress_rid != 0) {
            recirculate_preserving_field_list(0);
        }
        log_msg("port {} pass {}", { standard_metadata.egress_port, meta.pass });
    }
}
control MyComputeChecksum(inout headers hdr, inout metadata meta) { apply { } }
control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.packet_in); packet.emit(hdr.ethernet); }
}
V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(),
         MyDeparser()) main;
