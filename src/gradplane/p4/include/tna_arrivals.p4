// The part of ThcIngress that the aggregation programs for Tofino share: blocks, routes, and counters.

    Counter<bit<32>, bit<1>>(1, CounterType_t.PACKETS) unknown_member;
    // By the port that they came in by: headers with a wrong checksum, and of another version.
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) damaged;
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) other_version;
    Counter<bit<32>, PortId_t>(512, CounterType_t.PACKETS) port_in;

#define BLOCK_INSTANCE(n) Block() block##n;
    EACH_BLOCK(BLOCK_INSTANCE)

    // -- routing -------------------------------------------------------------------------------

    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        for_tm.ucast_egress_port = port;
        meta.verdict = FORWARD;
    }

    action aggregate() { meta.local = 1; }

    action drop_route() { meta.verdict = DROP; }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; aggregate; drop_route; }
        const default_action = drop_route();
        size = 1024;
    }
