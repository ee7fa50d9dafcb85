// State: a firewall's Bloom filter, flowlets, a heavy hitter sketch, ECMP, counters and meters.
#include <core.p4>
#include <v1model.p4>

#define BLOOM_FILTER_ENTRIES 4096
#define BLOOM_FILTER_BIT_WIDTH 1
#define SKETCH_BUCKET_LENGTH 28
#define SKETCH_REGISTER(num) register<bit<32>>(SKETCH_BUCKET_LENGTH) sketch##num
#define SKETCH_COUNT(num, algorithm) hash(meta.index_sketch##num, HashAlgorithm.algorithm, \
    (bit<16>)0, {hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort}, \
    (bit<32>)SKETCH_BUCKET_LENGTH); \
    sketch##num.read(meta.value_sketch##num, meta.index_sketch##num); \
    meta.value_sketch##num = meta.value_sketch##num + 1; \
    sketch##num.write(meta.index_sketch##num, meta.value_sketch##num)

header ipv4_t { bit<8> ttl; bit<8> protocol; bit<32> srcAddr; bit<32> dstAddr; }
header tcp_t { bit<16> srcPort; bit<16> dstPort; bit<7> pad; bit<1> syn; bit<8> rest; }

struct metadata {
    bit<14> ecmp_hash;
    bit<14> ecmp_group_id;
    bit<32> index_sketch0;
    bit<32> value_sketch0;
    bit<32> index_sketch1;
    bit<32> value_sketch1;
    bit<48> flowlet_last_stamp;
    bit<48> flowlet_time_diff;
    bit<13> flowlet_register_index;
    bit<16> flowlet_id;
    bit<32> meter_tag;
}
struct headers { ipv4_t ipv4; tcp_t tcp; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) { 6: tcp; default: accept; }
    }
    state tcp { packet.extract(hdr.tcp); transition accept; }
}
control MyVerifyChecksum(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta,
                  inout standard_metadata_t standard_metadata) {
    register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_1;
    register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_2;
    register<bit<16>>(8192) flowlet_to_id;
    register<bit<48>>(8192) flowlet_time_stamp;
    SKETCH_REGISTER(0);
    SKETCH_REGISTER(1);
    counter(512, CounterType.packets_and_bytes) port_counter;
    direct_counter(CounterType.packets) route_hits;
    direct_meter<bit<32>>(MeterType.packets) my_meter;
    meter(16, MeterType.bytes) port_meter;
    bit<32> reg_pos_one; bit<32> reg_pos_two;
    bit<1> reg_val_one; bit<1> reg_val_two;
    bit<1> direction;

    action drop() { mark_to_drop(standard_metadata); }
    action compute_hashes(bit<32> ipAddr1, bit<32> ipAddr2, bit<16> port1, bit<16> port2) {
        hash(reg_pos_one, HashAlgorithm.crc16, (bit<32>)0,
             {ipAddr1, ipAddr2, port1, port2, hdr.ipv4.protocol}, (bit<32>)BLOOM_FILTER_ENTRIES);
        hash(reg_pos_two, HashAlgorithm.crc32, (bit<32>)0,
             {ipAddr1, ipAddr2, port1, port2, hdr.ipv4.protocol}, (bit<32>)BLOOM_FILTER_ENTRIES);
    }
    action set_direction(bit<1> dir) { direction = dir; }
    table check_ports {
        key = { standard_metadata.ingress_port: exact; standard_metadata.egress_spec: exact; }
        actions = { set_direction; NoAction; }
        size = 1024;
        default_action = NoAction();
    }
    action read_flowlet_registers() {
        hash(meta.flowlet_register_index, HashAlgorithm.crc16, (bit<16>)0,
             { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr }, (bit<14>)8192);
        flowlet_time_stamp.read(meta.flowlet_last_stamp, (bit<32>)meta.flowlet_register_index);
        flowlet_to_id.read(meta.flowlet_id, (bit<32>)meta.flowlet_register_index);
        flowlet_time_stamp.write((bit<32>)meta.flowlet_register_index,
                                 standard_metadata.ingress_global_timestamp);
    }
    action update_flowlet_id() {
        bit<32> random_t;
        random(random_t, (bit<32>)0, (bit<32>)65000);
        meta.flowlet_id = (bit<16>)random_t;
    }
    action ecmp_group(bit<14> ecmp_group_id, bit<16> num_nhops) {
        hash(meta.ecmp_hash, HashAlgorithm.crc16, (bit<1>)0,
             { hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, meta.flowlet_id }, num_nhops);
        meta.ecmp_group_id = ecmp_group_id;
        route_hits.count();
    }
    action drop_counted() { }
    action set_nhop(bit<9> port) { standard_metadata.egress_spec = port; route_hits.count(); }
    table ipv4_lpm {
        key = { hdr.ipv4.dstAddr: lpm; }
        actions = { set_nhop; ecmp_group; @defaultonly drop_counted; }
        counters = route_hits;
        default_action = drop_counted;
    }
    action m_action() { my_meter.read(meta.meter_tag); }
    table m_read {
        key = { hdr.ipv4.srcAddr: exact; }
        actions = { m_action; NoAction; }
        default_action = NoAction;
        meters = my_meter;
        size = 16384;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            @atomic {
                read_flowlet_registers();
                meta.flowlet_time_diff =
                    standard_metadata.ingress_global_timestamp - meta.flowlet_last_stamp;
                if (meta.flowlet_time_diff > 48w200000) { update_flowlet_id(); }
            }
            switch (ipv4_lpm.apply().action_run) {
                ecmp_group: { meta.ecmp_hash = meta.ecmp_hash & 0xff; }
                drop_counted: { drop(); exit; }
            }
            SKETCH_COUNT(0, crc32_custom);
            SKETCH_COUNT(1, crc16_custom);
            port_counter.count((bit<32>) standard_metadata.ingress_port);
            port_meter.execute_meter((bit<32>)standard_metadata.ingress_port, meta.meter_tag);
            m_read.apply();
            if (hdr.tcp.isValid()) {
                direction = 0;
                if (check_ports.apply().hit) {
                    compute_hashes(hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort,
                                   hdr.tcp.dstPort);
                    if (direction == 0) {
                        if (hdr.tcp.syn == 1) {
                            bloom_filter_1.write(reg_pos_one, 1);
                            bloom_filter_2.write(reg_pos_two, 1);
                        }
                    } else if (direction == 1) {
                        bloom_filter_1.read(reg_val_one, reg_pos_one);
                        bloom_filter_2.read(reg_val_two, reg_pos_two);
                        if (reg_val_one != 1 || reg_val_two != 1) {
                            drop();
                        }
                    }
                }
            }
        }
    }
}
control MyEgress(inout headers hdr, inout metadata meta,
                 inout standard_metadata_t standard_metadata) { apply { } }
control MyComputeChecksum(inout headers hdr, inout metadata meta) { apply { } }
control MyDeparser(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(),
         MyDeparser()) main;
