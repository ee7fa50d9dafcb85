// The part of ThcEgress that the aggregation programs for v1model share: what they deliver, and to whom.

    counter(512, CounterType.packets) port_out;

    action deliver(bit<48> src_mac, bit<48> mac, bit<32> src_ip, bit<32> ip, bit<16> port) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = mac;
        hdr.ipv4.src_addr = src_ip;
        hdr.ipv4.dst_addr = ip;
        hdr.udp.dst_port = port;
    }

    action drop_packet() { mark_to_drop(standard_metadata); }

    table receivers {
        key = {
            hdr.agg.job : exact @name("job");
            meta.receiver : exact @name("worker");
        }
        actions = { deliver; @defaultonly drop_packet; }
        const default_action = drop_packet();
        size = 4096;
    }
