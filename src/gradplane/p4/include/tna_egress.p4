// Behind ingress, in the aggregation programs for Tofino: checksums, and the addresses of what goes to
// hosts. recirculation_t has, for egress:
//
//   addressed       to a host of the job, and not only forwarded
//   job, receiver   its number there; of a replica its instance says it

control ThcIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() agg_checksum;

    apply {
        hdr.agg.checksum = agg_checksum.update({
            hdr.agg.version, hdr.agg.type, hdr.agg.flags, hdr.agg.job, hdr.agg.worker,
            hdr.agg.slot, hdr.agg.pass, hdr.agg.sum_bits, hdr.agg.round, hdr.agg.bitmap,
            hdr.agg.norm, hdr.agg.count, hdr.agg.epoch, hdr.agg.code_bits
        });
        packet.emit(hdr);
    }
}

struct egress_headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
}

struct egress_metadata_t { }

parser ThcEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                       out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.recirculation);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        // The checksum of one with options is left as it is.
        transition select(packet.lookahead<bit<8>>()) {
            0x05 &&& 0x0F: parse_ipv4_header;
            default: accept;
        }
    }
    state parse_ipv4_header {
        packet.extract(hdr.ipv4);
        transition select(hdr.recirculation.addressed) {
            1: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control ThcEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
                  in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                  inout egress_intrinsic_metadata_for_output_port_t for_port) {
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) port_out;

    action deliver(bit<48> src_mac, bit<48> mac, bit<32> src_ip, bit<32> ip, bit<16> port) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = mac;
        hdr.ipv4.src_addr = src_ip;
        hdr.ipv4.dst_addr = ip;
        hdr.udp.dst_port = port;
    }

    action drop_packet() { for_deparser.drop_ctl = 1; }

    table receivers {
        key = {
            hdr.recirculation.job : exact @name("job");
            hdr.recirculation.receiver : exact @name("worker");
        }
        actions = { deliver; @defaultonly drop_packet; }
        const default_action = drop_packet();
        size = 4096;
    }

    apply {
        if (intrinsic.egress_port == RECIRCULATION_PORT) {
            // A copy goes on to another pass, where the packet itself begins anew.
            if (intrinsic.egress_rid != 0) {
                hdr.recirculation.elsewhere = 0;
            }
        } else {
            port_out.count(intrinsic.egress_port);
            if (hdr.recirculation.addressed == 1) {
                // The replicas of an answer differ only in their addresses.
                hdr.ipv4.tos = 0;
                hdr.ipv4.identification = 0;
                hdr.ipv4.flags = 2;
                hdr.ipv4.ttl = 64;
                hdr.ipv4.total_length = hdr.udp.length + IPV4_BYTES;
                hdr.udp.src_port = AGGREGATION_PORT;
                hdr.udp.checksum = 0;
                if (intrinsic.egress_rid != 0) {
                    hdr.recirculation.receiver = (bit<8>) intrinsic.egress_rid - 1;
                }
                receivers.apply();
            }
            hdr.recirculation.setInvalid();
        }
    }
}

control ThcEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
                hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
                hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr
            });
        }
        packet.emit(hdr);
    }
}
