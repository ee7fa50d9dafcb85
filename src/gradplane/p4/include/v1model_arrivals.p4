// The part of ThcIngress that the aggregation programs for v1model share: blocks, routes, and counters.

    counter(1, CounterType.packets) unknown_member;
    // By the port that they came in by: headers with a wrong checksum, and of another version.
    counter(512, CounterType.packets) damaged;
    counter(512, CounterType.packets) other_version;
    counter(512, CounterType.packets) port_in;

#define BLOCK_INSTANCE(n) Block() block##n;
    EACH_BLOCK(BLOCK_INSTANCE)

    // -- routing -------------------------------------------------------------------------------

    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
        meta.verdict = FORWARD;
    }

#ifdef GRADPLANE_EQUAL_WAYS_P4
    EqualWays() equal_ways;

    action forward_by_flow(bit<48> mac, bit<32> group, bit<16> count, bit<32> factor) {
        forward(mac, standard_metadata.egress_spec);
        meta.ways = group;
        meta.count_of_ways = count;
        meta.factor = factor;
    }
#define FORWARDED_BY_FLOW forward_by_flow;
#else
#define FORWARDED_BY_FLOW
#endif

    action aggregate() { meta.local = 1; }

    action drop_route() { meta.verdict = DROP; }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; aggregate; drop_route; FORWARDED_BY_FLOW }
        const default_action = drop_route();
        size = ROUTES;
    }
