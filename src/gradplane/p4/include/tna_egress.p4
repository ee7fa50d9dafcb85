// Behind ingress, in the aggregation programs for Tofino: checksums, and the addresses of what goes to
// hosts. recirculation_t has, for egress:
//
//   addressed       to a host of the job, and not only forwarded
//   job, receiver   its number there; of a replica its instance says it

#define HEADER_FIELDS \
    hdr.agg.version, hdr.agg.type, hdr.agg.flags, hdr.agg.job, hdr.agg.worker, hdr.agg.slot, \
    hdr.agg.pass, hdr.agg.sum_bits, hdr.agg.round, hdr.agg.bitmap, hdr.agg.norm, hdr.agg.count, \
    hdr.agg.epoch, hdr.agg.code_bits

control ThcIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() agg_checksum;

    apply {
#ifdef ROLE
        // Without a path it has none to add.
        hdr.agg.checksum = agg_checksum.update({ HEADER_FIELDS, hdr.path.high, hdr.path.low });
#else
        hdr.agg.checksum = agg_checksum.update({ HEADER_FIELDS });
#endif
        packet.emit(hdr);
    }
}

struct egress_headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
#ifdef NODE
    aggregation_t   agg;
    hops_t          path;
#endif
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
#ifdef NODE
        transition parse_aggregation;
    }

    state parse_aggregation {
        packet.extract(hdr.agg);
        transition select(hdr.agg.type) {
            TYPE_SUMS: parse_path;
            TYPE_NORM_RESULT: parse_path;
            TYPE_STRAGGLER: parse_path;
            TYPE_EPOCH: parse_path;
            default: accept;
        }
    }

    state parse_path {
        packet.extract(hdr.path);
#endif
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

#ifdef NODE
    // The receiver of a result that its sums are not in.
    action not_counted() { hdr.agg.flags = hdr.agg.flags | FLAG_UNCOUNTED; }

#define NOT_COUNTED(n) \
    (n, 0 &&& 32w1 << n, _) : not_counted(); \
    (n + 32, _, 0 &&& 32w1 << n) : not_counted();

    @hidden table counted {
        key = {
            hdr.recirculation.receiver : ternary;
            hdr.recirculation.summed_low : ternary;
            hdr.recirculation.summed_high : ternary;
        }
        actions = { not_counted; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            NOT_COUNTED(0) NOT_COUNTED(1) NOT_COUNTED(2) NOT_COUNTED(3) NOT_COUNTED(4)
            NOT_COUNTED(5) NOT_COUNTED(6) NOT_COUNTED(7) NOT_COUNTED(8) NOT_COUNTED(9)
            NOT_COUNTED(10) NOT_COUNTED(11) NOT_COUNTED(12) NOT_COUNTED(13) NOT_COUNTED(14)
            NOT_COUNTED(15) NOT_COUNTED(16) NOT_COUNTED(17) NOT_COUNTED(18) NOT_COUNTED(19)
            NOT_COUNTED(20) NOT_COUNTED(21) NOT_COUNTED(22) NOT_COUNTED(23) NOT_COUNTED(24)
            NOT_COUNTED(25) NOT_COUNTED(26) NOT_COUNTED(27) NOT_COUNTED(28) NOT_COUNTED(29)
            NOT_COUNTED(30) NOT_COUNTED(31)
        }
        size = 64;
    }
#endif

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
#ifdef NODE
                if (hdr.agg.type == TYPE_SUMS || hdr.agg.type == TYPE_NORM_RESULT) {
                    counted.apply();
                }
#endif
            }
            hdr.recirculation.setInvalid();
        }
    }
}

control ThcEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;
#ifdef NODE
    Checksum() agg_checksum;
#endif

    apply {
#ifdef NODE
        hdr.agg.checksum = agg_checksum.update({ HEADER_FIELDS, hdr.path.high, hdr.path.low });
#endif
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({ IPV4_FIELDS });
        }
        packet.emit(hdr);
    }
}
