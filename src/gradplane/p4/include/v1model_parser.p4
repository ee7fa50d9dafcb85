// The part of ThcParser that the aggregation programs for v1model share: up to the aggregation header.

    state start {
        transition select(standard_metadata.instance_type, standard_metadata.ingress_port) {
            (INSTANCE_RECIRCULATED, _): parse_recirculation;
#ifdef HAS_CABLE
            (_, CABLE_IN): parse_recirculation;
#endif
            default: parse_ethernet;
        }
    }
    state parse_recirculation {
        packet.extract(hdr.recirculation);
        meta.again = 1;
        transition parse_ethernet;
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
        // No options, no fragments: others are forwarded without being parsed.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): parse_udp;
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
