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
// For BMv2, p4c unrolls loops, so they would need constant bounds there, and it has no run-time
// index into a stack of header unions.

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/inceptionn.p4"

// The largest payload in an MTU of 1500, and its largest compressed form.
#define MAX_WORDS 368
#define MAX_CELLS 414

const bit<16> MAX_PAYLOAD_BYTES = MAX_WORDS * 4;
const bit<8>  MESSAGE_BYTES = 16;
const bit<16> MESSAGE_WORDS = 4;

// ToS without the ECN bits.
const bit<6> MARKED = 0x28 >> 2;
const bit<6> COMPRESSED = 0x2C >> 2;

// The kind of packet that the parser found.
typedef bit<2> kind_t;
const kind_t PLAIN = 0;
const kind_t VALUES = 1;            // marked, parsed into words
const kind_t BURSTS = 2;            // compressed, parsed into cells
const kind_t UNFIT = 3;             // marked; `reason` says why it cannot be compressed

// The reasons why a marked packet is not compressed: indexes of counter `passed`.
typedef bit<4> reason_t;
const reason_t LOCAL = 0;           // it leaves to a host
const reason_t NOT_UDP = 1;
const reason_t OPTIONS = 2;
const reason_t FRAGMENT = 3;
const reason_t BAD_LENGTH = 4;      // the lengths of IP, UDP and the frame contradict each other
const reason_t NOT_WORDS = 5;       // not a multiple of four bytes
const reason_t NO_VALUES = 6;
const reason_t TOO_LONG = 7;
const reason_t BAD_CHECKSUM = 8;    // of the IP header
const reason_t NO_BOUND = 9;
const reason_t UNKNOWN_BOUND = 10;
const reason_t UNKNOWN_FORMAT = 11;
const reason_t NOT_SHORTER = 12;

const bit<16> STREAM_PORT = 18257;
const bit<32> INSTANCE_REPLICATION = 5;

header message_t { bit<128> bytes; }

struct headers_t {
    ethernet_t        ethernet;
    ipv4_t            ipv4;
    udp_t             udp;
    shim_t            shim;
    message_t         message;
    word_t[MAX_WORDS] words;
    cell_t[MAX_CELLS] cells;
}

struct metadata_t {
    kind_t   kind;
    reason_t reason;
    bit<1>   from_host;
    bit<1>   to_host;
    bit<1>   changed;

    // parser
    bit<16>  words;             // of the payload
    bit<16>  left;              // words or values still to extract
    bit<4>   left_in_burst;
    bit<16>  tags;
    bit<16>  size;              // bytes of the bursts

    // from the tables
    bit<8>   bound;             // 0: none
    bit<8>   header_bytes;
    bit<1>   little_endian;
}

#include "include/bursts.p4"

parser TosParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
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
            default: accept;
        }
    }

    // -- marked: words --------------------------------------------------------------------------

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
        meta.words = (hdr.udp.length - UDP_BYTES) >> 2;
        meta.left = meta.words;
        bit<32> size = (bit<32>) hdr.ipv4.total_length;
        transition select(size == (bit<32>) hdr.udp.length + 20,
                          size + 14 <= standard_metadata.packet_length,
                          hdr.udp.length[1:0], hdr.udp.length) {
            (true, true, _, 0 .. UDP_BYTES - 1): accept;
            (true, true, _, UDP_BYTES): no_values;
            (true, true, 0, UDP_BYTES .. UDP_BYTES + MAX_PAYLOAD_BYTES): parse_words;
            (true, true, 0, _): too_long;
            (true, true, _, _): not_words;
            default: accept;
        }
    }
    state parse_words {
        packet.extract(hdr.words.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: values;
            default: parse_words;
        }
    }
    state values { meta.kind = VALUES; transition accept; }
    state not_udp { meta.reason = NOT_UDP; transition accept; }
    state options { meta.reason = OPTIONS; transition accept; }
    state fragment { meta.reason = FRAGMENT; transition accept; }
    state not_words { meta.reason = NOT_WORDS; transition accept; }
    state no_values { meta.reason = NO_VALUES; transition accept; }
    state too_long { meta.reason = TOO_LONG; transition accept; }

    // -- compressed: cells ----------------------------------------------------------------------

    // Damage shows in the error or the size, where the packet leaves for a host.
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
        meta.left = hdr.shim.count;
        transition select(hdr.shim.count, hdr.shim.flags) {
            (1 .. MAX_WORDS, 0 .. FLAG_LITTLE_ENDIAN): parse_burst;
            (1 .. MAX_WORDS - MESSAGE_WORDS, FLAG_MESSAGE .. FLAG_MESSAGE + FLAG_LITTLE_ENDIAN):
                parse_message;
        }
    }
    state parse_message {
        packet.extract(hdr.message);
        transition parse_burst;
    }
    state parse_burst {
        packet.extract(hdr.cells.next.tags);
        meta.tags = hdr.cells.last.tags.tags;
        meta.left_in_burst = 8;
        meta.size = meta.size + 2;
        transition parse_vector;
    }
    state parse_vector {
        transition select(meta.tags[1:0]) {
            0: next_vector;
            1: parse_byte;
            2: parse_half;
            3: parse_word;
        }
    }
    state parse_byte { packet.extract(hdr.cells.next.byte); transition next_vector; }
    state parse_half { packet.extract(hdr.cells.next.half); transition next_vector; }
    state parse_word { packet.extract(hdr.cells.next.word); transition next_vector; }
    state next_vector {
        meta.size = meta.size + bytes_of(meta.tags[1:0]);
        meta.tags = meta.tags >> 2;
        meta.left = meta.left - 1;
        meta.left_in_burst = meta.left_in_burst - 1;
        transition select(meta.left, meta.left_in_burst) {
            (0, _): parse_padding;
            (_, 0): parse_burst;
            default: parse_vector;
        }
    }
    state parse_padding {
        transition select(meta.tags) { 0: accept; }
    }
}

control TosVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
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

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; drop; }
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
        port_in.count((bit<32>) standard_metadata.ingress_port);
        host_ports.apply();
        if (hdr.ipv4.isValid()) {
            routes.apply();
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
    Decompress() decompress;

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
        entries = { STREAM_PORT : set_format(16, 0); }
        size = 1024;
    }

    apply {
        to_host_ports.apply();
        if (meta.kind == BURSTS && meta.from_host == 0 && meta.to_host == 1) {
            if (standard_metadata.parser_error != error.NoError
                    || standard_metadata.checksum_error == 1
                    || !known_bound(hdr.shim.bound)
                    || hdr.ipv4.total_length != hdr.udp.length + IPV4_BYTES
                    || hdr.udp.length != UDP_BYTES + SHIM_BYTES + meta.size
                        + (hdr.message.isValid() ? (bit<16>) MESSAGE_BYTES : 16w0)) {
                malformed.count(0);
                mark_to_drop(standard_metadata);
            } else {
                decompressed.count(0);
                decompress.apply(hdr, meta);
            }
        } else if (meta.from_host == 1 && (meta.kind == VALUES || meta.kind == UNFIT)) {
            if (meta.to_host == 1) {
                meta.reason = LOCAL;
            } else if (meta.kind == VALUES) {
                bounds.apply();
                formats.apply();
                if (standard_metadata.checksum_error == 1) {
                    meta.reason = BAD_CHECKSUM;
                } else if (meta.bound == 0) {
                    meta.reason = NO_BOUND;
                } else if (!known_bound(meta.bound)) {
                    meta.reason = UNKNOWN_BOUND;
                } else if (meta.header_bytes != 0 && meta.header_bytes != MESSAGE_BYTES) {
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
        } else {
            port_out.count((bit<32>) standard_metadata.egress_port);
        }
    }
}

control TosCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.changed == 1,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control TosDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.shim);
        packet.emit(hdr.message);
        packet.emit(hdr.words);
        packet.emit(hdr.cells);
    }
}

V1Switch(TosParser(), TosVerify(), TosIngress(), TosEgress(), TosCompute(), TosDeparser()) main;
