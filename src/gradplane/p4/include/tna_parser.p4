// The ingress parser of the aggregation programs for Tofino.
//
// It needs headers_t, metadata_t, and of what precedes a packet between two passes, recirculation_t:
//
//   elsewhere     on its way to the pipe with the registers: not a pass yet
//   collecting    codes are consumed, and sums come in front of others
//   emptied       `skip` passes of its payload go: of codes or, with `collecting`, of sums

#ifdef NODE
#define PAYLOAD_TYPE TYPE_PARTIAL_SUMS
#define PARSE_PAYLOAD parse_sums
#define SKIP_PAYLOAD skip_sums
#else
#define PAYLOAD_TYPE TYPE_CODES
#define PARSE_PAYLOAD parse_codes
#define SKIP_PAYLOAD skip_codes
#endif

parser ThcIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                        out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;
    Checksum() agg_checksum;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.port = intrinsic.ingress_port;
        transition select(intrinsic.ingress_port) {
            RECIRCULATION_PORT: parse_recirculation;
            default: parse_ethernet;
        }
    }
    state parse_recirculation {
        packet.extract(hdr.recirculation);
        meta.port = hdr.recirculation.ingress_port;
        transition select(hdr.recirculation.elsewhere) {
            1: parse_ethernet;
            default: parse_again;
        }
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            5: check_ipv4;
            default: accept;
        }
    }
    state check_ipv4 {
        meta.wrong_checksum = (bit<1>) ipv4_checksum.verify();
        // No options, no fragments: others are forwarded without being parsed.
        transition select(hdr.ipv4.version, hdr.ipv4.flags[0:0], hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 0, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            AGGREGATION_PORT: parse_version;
            default: accept;
        }
    }
    state parse_version {
        transition select(packet.lookahead<bit<4>>()) {
            AGGREGATION_VERSION: parse_aggregation;
            default: accept;
        }
    }
    state parse_aggregation {
        packet.extract(hdr.agg);
        agg_checksum.add(hdr.agg);
#ifdef ROLE
        transition select(hdr.agg.flags[3:3], hdr.agg.type) {
            (1, TYPE_NORM_RESULT): parse_path;
            (1, TYPE_SUMS): parse_path;
            (1, TYPE_STRAGGLER): parse_path;
            (1, TYPE_EPOCH): parse_path;
            default: parse_payload;
        }
    }

    state parse_path {
        packet.extract(hdr.path);
        agg_checksum.add(hdr.path);
        meta.damaged = (bit<1>) agg_checksum.verify();
        meta.has_path = 1;
        transition accept;
    }

    state parse_payload {
#endif
        meta.damaged = (bit<1>) agg_checksum.verify();
        transition select(hdr.agg.type, intrinsic.ingress_port) {
            (PAYLOAD_TYPE, OF_AGGREGATING_PIPE): PARSE_PAYLOAD;
            default: accept;
        }
    }
    // Between two passes, or on its way out without a payload.
    state parse_again {
        meta.again = 1;
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.agg);
#ifdef NODE
        transition select(hdr.agg.type) {
            TYPE_PARTIAL_SUMS: parse_rest;
            default: parse_path_of_answer;
        }
    }

    state parse_path_of_answer {
        packet.extract(hdr.path);
        transition parse_rest;
    }

    state parse_rest {
#endif
        transition select(hdr.recirculation.emptied, hdr.recirculation.collecting) {
            (0, 0): PARSE_PAYLOAD;
            (1, 0): SKIP_PAYLOAD;
            (1, 1): skip_sums;
            default: accept;
        }
    }
#ifdef NODE
    state parse_sums {
        packet.extract(hdr.sums);
        transition accept;
    }
#else
    state parse_codes {
        packet.extract(hdr.codes);
        meta.looks_up = 1;
        transition accept;
    }
#endif

#define SKIP(what, bytes) \
    state skip_##what { \
        transition select(hdr.recirculation.skip) { \
            1: skip_##what##1; 2: skip_##what##2; 3: skip_##what##3; 4: skip_##what##4; \
            5: skip_##what##5; 6: skip_##what##6; 7: skip_##what##7; 8: skip_##what##8; \
            default: accept; \
        } \
    } \
    state skip_##what##8 { packet.advance(8 * bytes); transition skip_##what##7; } \
    state skip_##what##7 { packet.advance(8 * bytes); transition skip_##what##6; } \
    state skip_##what##6 { packet.advance(8 * bytes); transition skip_##what##5; } \
    state skip_##what##5 { packet.advance(8 * bytes); transition skip_##what##4; } \
    state skip_##what##4 { packet.advance(8 * bytes); transition skip_##what##3; } \
    state skip_##what##3 { packet.advance(8 * bytes); transition skip_##what##2; } \
    state skip_##what##2 { packet.advance(8 * bytes); transition skip_##what##1; } \
    state skip_##what##1 { packet.advance(8 * bytes); transition accept; }
#ifndef NODE
    SKIP(codes, PASS_CODES_BYTES)
#endif
    SKIP(sums, (PASS_SUM_BITS / 8))
}
