// Compression of float32 payloads at the network's edge (INCEPTIONN, MICRO '18).
//
// An application marks its packets with ToS 0x28. Where a marked packet leaves a host's switch
// for another one, its values are compressed and the mark becomes 0x2C; where such a packet leaves
// for a host, values, lengths and mark are restored. The hosts do not notice. The same program runs
// in the core: there the tables of host ports are empty and packets are only forwarded.
//
//   marked:      Ethernet  IPv4  UDP         [message header]  values
//   compressed:  Ethernet  IPv4  UDP  shim  [message header]  tags vectors  tags vectors ...
//
// Packets that the network must not change, or that would not get shorter, pass unchanged and are
// counted. So do packets between two hosts of one switch, where compression would gain nothing.
//
// simple_switch gives a packet room for 512 bytes more than it was received with, and a restored one
// may be 1376 bytes longer. There a pass restores 128 values; between two such passes the packet leaves
// through one port and comes back, longer, through another that a cable connects with it.

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/equal_ways.p4"
#include "include/inceptionn.p4"

// Blocks of its bursts, and those behind them that the last burst's first byte can reach.
#define MAX_BLOCKS 102

#ifndef VALUES_PER_PASS
#ifdef __TARGET_BMV2__
#define VALUES_PER_PASS 128
#else
#define VALUES_PER_PASS MAX_WORDS
#endif
#endif

// The two ends of the cable.
const bit<9> CABLE_OUT = 508;
const bit<9> CABLE_IN = 509;

const bit<16> MESSAGE_WORDS = 4;
const bit<16> MAX_BURSTS_BYTES = (MAX_WORDS / 8) * (2 + 32);

// The kind of packet that the parser found.
typedef bit<2> kind_t;
const kind_t PLAIN = 0;
const kind_t VALUES = 1;            // marked, parsed into words
const kind_t BURSTS = 2;            // compressed, parsed into cells
const kind_t UNFIT = 3;             // marked; `reason` says why it cannot be compressed

const bit<32> INSTANCE_RECIRCULATED = 4;
const bit<32> INSTANCE_REPLICATION = 5;

// Precedes a packet between the passes that restore it.
header recirculation_t {
    bit<16> values;     // that the next pass restores
    bit<16> later;      // values that are left then
    bit<16> done;       // bytes of the words so far
    bit<16> size;       // bytes of the blocks that still have bursts
    bit<16> at;         // where the next one begins in them
    bit<16> removed;    // sums of 16-bit words: of all bursts,
    bit<16> added;      // and of the words so far
}

header done_t { varbit<(MAX_WORDS * 32)> words; }
header block_t { bit<128> bytes; }
header bytes8_t { bit<64> bytes; }
header bytes4_t { bit<32> bytes; }
header bytes2_t { bit<16> bytes; }
header byte_t { bit<8> bytes; }

struct headers_t {
    recirculation_t     recirculation;
    ethernet_t          ethernet;
    ipv4_t              ipv4;
    udp_t               udp;
    shim_t              shim;
    block_t             message;
    done_t              done;
    // The new payload.
    block_t[MAX_BLOCKS] new_blocks;
    bytes8_t            new8;
    bytes4_t            new4;
    bytes2_t            new2;
    byte_t              new1;
    // The payload as it came: words or bursts.
    block_t[MAX_BLOCKS] blocks;
    bytes8_t            last8;
    bytes4_t            last4;
    bytes2_t            last2;
    byte_t              last1;
}

struct metadata_t {
    kind_t   kind;
    reason_t reason;
    bit<1>   from_host;
    bit<1>   to_host;
    bit<1>   changed;

    // parser
    bit<16>  words;             // of the payload
    bit<16>  size;              // bytes of the bursts
    bit<16>  left;              // bytes still to extract

    // from the tables
    bit<32>  ways;              // the group of equal ones; 0: there is one
    bit<16>  count_of_ways;
    bit<32>  factor;
    bit<8>   bound;             // 0: none
    bit<8>   header_bytes;
    bit<1>   little_endian;

    // of a pass: see recirculation_t
    bit<16>  values;
    bit<16>  later;
    bit<16>  done;
    bit<16>  at;
    bit<16>  removed;
    bit<16>  added;
    bit<16>  padding;           // tags behind the last value
    bit<1>   restoring;
    bit<1>   malformed;
}

#include "include/bursts.p4"

parser TosParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.instance_type, standard_metadata.ingress_port) {
            (INSTANCE_RECIRCULATED, _): parse_recirculation;
#if VALUES_PER_PASS < MAX_WORDS
            (_, CABLE_IN): parse_recirculation;
#endif
            default: parse_ethernet;
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
        transition select(hdr.ipv4.version, hdr.ipv4.tos[7:2]) {
            (4, MARKED): parse_marked;
            (4, COMPRESSED): parse_compressed;
            (4, _): parse_plain;
            default: accept;
        }
    }

    // For the ports, by which equal ways are chosen.
    state parse_plain {
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 5, 0, 0): parse_plain_udp;
            default: accept;
        }
    }
    state parse_plain_udp {
        packet.extract(hdr.udp);
        transition accept;
    }

    // -- marked ---------------------------------------------------------------------------------

    state parse_marked {
        meta.kind = UNFIT;
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 5, 0, 0): parse_marked_udp;
            (PROTOCOL_UDP, 5, _, _): fragment;
            (PROTOCOL_UDP, _, _, _): options;
            default: not_udp;
        }
    }
    state parse_marked_udp {
        meta.reason = BAD_LENGTH;
        packet.extract(hdr.udp);
        meta.left = hdr.udp.length - UDP_BYTES;
        meta.words = meta.left >> 2;
        bit<32> size = (bit<32>) hdr.ipv4.total_length;
        transition select(size == (bit<32>) hdr.udp.length + 20,
                          size + 14 <= standard_metadata.packet_length,
                          hdr.udp.length[1:0], hdr.udp.length) {
            (true, true, _, 0 .. UDP_BYTES - 1): accept;
            (true, true, _, UDP_BYTES): no_values;
            (true, true, 0, UDP_BYTES .. UDP_BYTES + MAX_PAYLOAD_BYTES): parse_payload;
            (true, true, 0, _): too_long;
            (true, true, _, _): not_words;
            default: accept;
        }
    }
    state values { meta.kind = VALUES; transition accept; }
    state not_udp { meta.reason = NOT_UDP; transition accept; }
    state options { meta.reason = OPTIONS; transition accept; }
    state fragment { meta.reason = FRAGMENT; transition accept; }
    state not_words { meta.reason = NOT_WORDS; transition accept; }
    state no_values { meta.reason = NO_VALUES; transition accept; }
    state too_long { meta.reason = TOO_LONG; transition accept; }

    // -- compressed -----------------------------------------------------------------------------

    // Damage shows in the error or the bursts, where the packet leaves for a host.
    state parse_compressed {
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 5, 0, 0): parse_shim;
            default: accept;
        }
    }
    state parse_shim {
        meta.kind = BURSTS;
        packet.extract(hdr.udp);
        packet.extract(hdr.shim);
        meta.left = hdr.udp.length - UDP_BYTES - SHIM_BYTES;
        transition select(hdr.shim.count, hdr.shim.flags) {
            (1 .. MAX_WORDS, 0 .. FLAG_LITTLE_ENDIAN): parse_bursts;
            (1 .. MAX_WORDS - MESSAGE_WORDS, FLAG_MESSAGE .. FLAG_MESSAGE + FLAG_LITTLE_ENDIAN):
                parse_message;
            default: no_match;
        }
    }
    // Said, as p4c accepts what fits no case, without an error.
    state no_match {
        verify(false, error.NoMatch);
        transition reject;
    }
    state parse_message {
        packet.extract(hdr.message);
        meta.left = meta.left - MESSAGE_BYTES;
        transition parse_bursts;
    }
    state parse_bursts {
        meta.size = meta.left;
        transition select(meta.left) { 0 .. MAX_BURSTS_BYTES: parse_payload; default: no_match; }
    }

    // -- partly restored ------------------------------------------------------------------------

    state parse_recirculation {
        packet.extract(hdr.recirculation);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.shim);
        transition select(hdr.shim.flags) {
            FLAG_MESSAGE &&& FLAG_MESSAGE: parse_message_again;
            default: parse_done;
        }
    }
    state parse_message_again {
        packet.extract(hdr.message);
        transition parse_done;
    }
    state parse_done {
        packet.extract(hdr.done, (bit<32>) hdr.recirculation.done << 3);
        meta.kind = BURSTS;
        meta.left = hdr.recirculation.size;
        transition parse_bursts;
    }

    // -- words or bursts: blocks and what is left -----------------------------------------------

    state parse_payload {
        transition select(meta.left) {
            0 .. 15: parse_8;
            default: parse_block;
        }
    }
    state parse_block {
        packet.extract(hdr.blocks.next);
        meta.left = meta.left - 16;
        transition parse_payload;
    }
    state parse_8 {
        transition select(meta.left) { 8 &&& 8: extract_8; default: parse_4; }
    }
    state extract_8 { packet.extract(hdr.last8); transition parse_4; }
    state parse_4 {
        transition select(meta.left) { 4 &&& 4: extract_4; default: parse_2; }
    }
    state extract_4 { packet.extract(hdr.last4); transition parse_2; }
    state parse_2 {
        transition select(meta.left) { 2 &&& 2: extract_2; default: parse_1; }
    }
    state extract_2 { packet.extract(hdr.last2); transition parse_1; }
    state parse_1 {
        transition select(meta.left) { 1 &&& 1: extract_1; default: parsed; }
    }
    state extract_1 { packet.extract(hdr.last1); transition parsed; }
    state parsed {
        transition select(meta.kind) { UNFIT: values; default: accept; }
    }
}

control TosVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control TosIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) port_in;

    action drop() { mark_to_drop(standard_metadata); }

    // The switches stand for a LAN: nothing but the destination's MAC changes.
    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst_addr = mac;
        standard_metadata.egress_spec = port;
    }

    EqualWays() equal_ways;

    action forward_by_flow(bit<48> mac, bit<32> group, bit<16> count, bit<32> factor) {
        forward(mac, standard_metadata.egress_spec);
        meta.ways = group;
        meta.count_of_ways = count;
        meta.factor = factor;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; drop; forward_by_flow; }
        default_action = drop();
        size = 1024;
    }

    action switch_to(bit<9> port) { standard_metadata.egress_spec = port; }

    action flood(bit<16> group) { standard_metadata.mcast_grp = group; }

    // For frames that are not IPv4.
    table stations {
        key = { hdr.ethernet.dst_addr : exact; }
        actions = { switch_to; flood; drop; }
        default_action = drop();
        size = 1024;
    }

    action host() { meta.from_host = 1; }

    table host_ports {
        key = { standard_metadata.ingress_port : exact @name("port"); }
        actions = { host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        if (!hdr.recirculation.isValid()) {
            port_in.count((bit<32>) standard_metadata.ingress_port);
            host_ports.apply();
        }
        if (hdr.recirculation.isValid() && hdr.recirculation.later != 0) {
            standard_metadata.egress_spec = CABLE_OUT;
        } else if (hdr.ipv4.isValid()) {
            routes.apply();
            if (meta.ways != 0) {
                equal_ways.apply(hdr.ipv4, hdr.udp, meta.ways, meta.count_of_ways, meta.factor,
                                 standard_metadata);
            }
        } else if (hdr.ethernet.isValid()) {
            stations.apply();
        } else {
            drop();
        }
    }
}

control TosEgress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) port_out;
    counter(1, CounterType.packets_and_bytes) compressed;
    counter(1, CounterType.packets_and_bytes) decompressed;
    counter(1, CounterType.packets_and_bytes) malformed;
    counter(16, CounterType.packets_and_bytes) passed;

    Compress() compress;
    Walk() walk;
    Decompress() decompress;
    Finish() finish;
    LastBytes() last_bytes;

    bit<128> rest;
    bool again = false;     // not the packet's first pass

    action host() { meta.to_host = 1; }

    table to_host_ports {
        key = { standard_metadata.egress_port : exact @name("port"); }
        actions = { host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    // The error stays below 2^-k.
    action set_bound(bit<8> k) { meta.bound = k; }

    table bounds {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { set_bound; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    action set_format(bit<8> header_bytes, bit<1> little_endian) {
        meta.header_bytes = header_bytes;
        meta.little_endian = little_endian;
    }

    table formats {
        key = { hdr.udp.dst_port : exact; }
        actions = { set_format; }
        default_action = set_format(0, 0);
        size = 1024;
    }

    // -- restoring ------------------------------------------------------------------------------

    action start() {
        meta.restoring = 1;
        if (hdr.shim.count > VALUES_PER_PASS) {
            meta.later = hdr.shim.count;        // nothing in this pass, which checks the packet
        } else {
            meta.values = hdr.shim.count;
        }
    }

    action sum_bursts() {
        long_sum_t removed = (long_sum_t) (hdr.shim.count ++ hdr.shim.bound ++ hdr.shim.flags);
        bit<16> last = meta.size >> 4;
        for (bit<16> i = 0; i <= last; i = i + 1) {
            removed = removed + (long_sum_t) hdr.blocks[i].bytes;
        }
        meta.removed = folded_blocks(removed);
    }

    action resume() {
        meta.restoring = 1;
        meta.values = hdr.recirculation.values;
        meta.later = hdr.recirculation.later;
        meta.done = hdr.recirculation.done;
        meta.at = hdr.recirculation.at;
        meta.removed = hdr.recirculation.removed;
        meta.added = hdr.recirculation.added;
    }

    action pass_on() {
        bit<16> gone = meta.at >> 4;
        for (bit<16> i = 0; i < gone; i = i + 1) {
            hdr.blocks[i].setInvalid();
        }
        hdr.blocks[meta.size >> 4].setInvalid();
        hdr.recirculation.setValid();
        hdr.recirculation.values = meta.later;
        if (meta.later > VALUES_PER_PASS) {
            hdr.recirculation.values = VALUES_PER_PASS;
        }
        hdr.recirculation.later = meta.later - hdr.recirculation.values;
        hdr.recirculation.done = meta.done + (meta.values << 2);
        hdr.recirculation.size = meta.size - (gone << 4);
        hdr.recirculation.at = (bit<16>) meta.at[3:0];
        hdr.recirculation.removed = meta.removed;
        hdr.recirculation.added = meta.added;
    }

    apply {
        if (hdr.recirculation.isValid()) {
            again = true;
            resume();
        } else {
            to_host_ports.apply();
            if (meta.kind == BURSTS && meta.from_host == 0 && meta.to_host == 1) {
                start();
                if (standard_metadata.parser_error != error.NoError
                        || standard_metadata.checksum_error == 1
                        || !known_bound(hdr.shim.bound)
                        || hdr.ipv4.total_length != hdr.udp.length + IPV4_BYTES) {
                    meta.malformed = 1;
                }
            }
        }

        if (meta.restoring == 1) {
            if (meta.malformed == 0) {
                last_bytes.apply(hdr, rest);
                hdr.blocks[meta.size >> 4] = { rest };
                if (!again) {
                    sum_bursts();
                }
                if (meta.values != 0) {
                    decompress.apply(hdr, meta);
                } else {
                    walk.apply(hdr, meta);
                }
                if (meta.later == 0 || meta.values == 0) {
                    if (meta.at != meta.size || meta.padding != 0) {
                        meta.malformed = 1;
                    }
                }
            }
            if (meta.malformed == 1) {
                malformed.count(0);
                mark_to_drop(standard_metadata);
            } else {
                if (!again) {
                    decompressed.count(0);
                }
                if (meta.later == 0) {
                    finish.apply(hdr, meta);
                } else {
                    if (meta.values == 0) {
                        meta.at = 0;
                        recirculate_preserving_field_list(0);
                    }
                    pass_on();
                }
            }
        } else if (meta.from_host == 1 && (meta.kind == VALUES || meta.kind == UNFIT)) {
            if (meta.to_host == 1) {
                meta.reason = LOCAL;
            } else if (meta.kind == VALUES) {
                bounds.apply();
                // Not an entry: a table that has some in the source takes no others on BMv2.
                if (formats.apply().miss && hdr.udp.dst_port == STREAM_PORT) {
                    set_format((bit<8>) MESSAGE_BYTES, 0);
                }
                if (standard_metadata.checksum_error == 1) {
                    meta.reason = BAD_CHECKSUM;
                } else if (meta.bound == 0) {
                    meta.reason = NO_BOUND;
                } else if (!known_bound(meta.bound)) {
                    meta.reason = UNKNOWN_BOUND;
                } else if (meta.header_bytes != 0 && (bit<16>) meta.header_bytes != MESSAGE_BYTES) {
                    meta.reason = UNKNOWN_FORMAT;
                } else if (meta.words << 2 <= (bit<16>) meta.header_bytes) {
                    meta.reason = NO_VALUES;
                } else {
                    compress.apply(hdr, meta);
                }
            }
            if (meta.kind == BURSTS) {
                compressed.count(0);
            } else {
                passed.count((bit<32>) meta.reason);
            }
        }
        if (standard_metadata.instance_type == INSTANCE_REPLICATION
                && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);        // flooded, but not back
        } else if (!again) {
            port_out.count((bit<32>) standard_metadata.egress_port);
        }
    }
}

control TosCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.changed == 1,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control TosDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.recirculation);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.shim);
        packet.emit(hdr.message);
        packet.emit(hdr.done);
        packet.emit(hdr.new_blocks);
        packet.emit(hdr.new8);
        packet.emit(hdr.new4);
        packet.emit(hdr.new2);
        packet.emit(hdr.new1);
        packet.emit(hdr.blocks);
        packet.emit(hdr.last8);
        packet.emit(hdr.last4);
        packet.emit(hdr.last2);
        packet.emit(hdr.last1);
    }
}

V1Switch(TosParser(), TosVerify(), TosIngress(), TosEgress(), TosCompute(), TosDeparser()) main;
