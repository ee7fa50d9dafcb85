// Of equal ways to a host a packet takes the one that its flow decides: addresses, protocol, UDP
// ports. The factor is odd, and a switch's own: with one for all, those behind a switch would
// decide as it did, and leave ways unused.

#ifndef GRADPLANE_EQUAL_WAYS_P4
#define GRADPLANE_EQUAL_WAYS_P4

control EqualWays(in ipv4_t ipv4, in udp_t udp, in bit<32> group, in bit<16> count, in bit<32> factor,
                  inout standard_metadata_t standard_metadata) {
    bit<32> ports = 0;
    bit<32> flow;
    bit<16> way;

    action leave(bit<9> port) { standard_metadata.egress_spec = port; }

    table ways {
        key = {
            group : exact @name("group");
            way : exact @name("way");
        }
        actions = { leave; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        if (udp.isValid()) {
            ports = udp.src_port ++ udp.dst_port;
        }
        hash(flow, HashAlgorithm.crc32, 32w0,
             { ipv4.src_addr, ipv4.dst_addr, ipv4.protocol, ports }, 33w0x100000000);
        flow = flow * factor;
        way = (bit<16>) (((bit<32>) flow[31:16] * (bit<32>) count) >> 16);
        ways.apply();
    }
}

#endif
