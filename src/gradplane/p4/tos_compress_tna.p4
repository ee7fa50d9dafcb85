// Compression of float32 payloads at the network's edge (INCEPTIONN, MICRO '18) for Tofino 2: the
// rules, the wire format and the tables of tos_compress.p4, in the chip's way.
//
// A pass handles the eight values of a burst; a packet's values change places through registers.
// First the packet gets shorter: each pass takes the next burst off its front and keeps it. Then it
// grows: each pass puts a burst back in front, the last one first. Words get their compressed form
// where they are taken, bursts their words where they are given (include/tna_value.p4 says why).
//
//   values of bursts 0 ... n  -->  taking 0, 1, ... n  -->  giving n, ... 1, 0  -->  the other form
//
// A packet to be compressed is measured while its words are taken; they are kept, too, and if it
// would not get shorter, it is given them again. Whether a compressed packet is sound is known at
// its last tags.
//
// Several packets may be between their passes. Each has a row of the registers, by its serial
// number; if as many as there are rows begin before it is done, it is lost, and counted.
//
// Ingress does not know a packet's length, so the egress of the first pass compares it.

#include <core.p4>
#include <t2na.p4>

#include "include/headers.p4"
#include "include/marked_packets.p4"

#define MESSAGE_WORDS 4

// Packets between their passes, as many as fit the chip, and the bursts of each: 46.
#ifndef ROW_BITS
#define ROW_BITS 9
#endif
#define BURST_BITS 6
#define CELLS (1 << (ROW_BITS + BURST_BITS))

typedef bit<ROW_BITS> row_t;
typedef bit<(ROW_BITS + BURST_BITS)> cell_t;

// The recirculation port of the pipe that has the values.
const PortId_t RECIRCULATION_PORT = 6;

// What a pass does, or what egress has to do with a packet that leaves.
typedef bit<4> mode_t;
const mode_t FORWARD = 0;
const mode_t TAKE_WORDS = 1;
const mode_t TAKE_BURSTS = 2;
const mode_t GIVE_BURSTS = 3;
const mode_t GIVE_WORDS = 4;
const mode_t GIVE_BACK = 5;         // the words of a packet that would not get shorter
const mode_t PASS = 6;              // counted by its reason
const mode_t PASS_IF_WHOLE = 7;     // its reason is BAD_LENGTH if the frame is too short
const mode_t SHORTENED = 8;
const mode_t RESTORED = 9;
const mode_t DROP = 10;
const mode_t MALFORMED = 11;        // dropped and counted
const mode_t OVERTAKEN = 12;        // likewise

#include "include/tna_value.p4"

// Precedes a packet between two passes, and between ingress and egress.
header carried_t {
    mode_t   mode;
    reason_t reason;
    bit<1>   odd;           // bytes of bursts before those to take, or to give
    bit<1>   first;         // this pass is the first one that takes, or that gives
    bit<1>   flooded;
    @padding bit<5> unused;
    @padding bit<7> unused2;
    bit<9>   port;          // where the packet will leave
    @padding bit<7> unused3;
    bit<9>   ingress_port;
    bit<8>   burst;
    bit<16>  remaining;     // values to take
    bit<16>  left;          // bytes that bursts may have and do not; see begin_*
    bit<16>  length;        // of the new UDP datagram
    bit<16>  frame;         // bytes of the frame as it came
    bit<16>  sum;           // of what was replaced so far, complemented
    bit<32>  serial;
}

const bit<16> CARRIED_BYTES = 21;
const bit<16> FCS_BYTES = 4;
const bit<16> ETHERNET_BYTES = 14;

header message_t { bit<128> bytes; }
header tags_t { bit<16> vector; }

#define VALUE_VECTORS(n) vectors_t value##n;
struct headers_t {
    carried_t  carried;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    shim_t     shim;
    message_t  message;
    tags_t     tags;
    EACH_VALUE(VALUE_VECTORS)
}

#define VALUE_METADATA(n) value_t value##n;
struct metadata_t {
    // parser
    bit<1>   again;             // not the packet's first pass
    bit<1>   marked;
    bit<1>   compressed;
    bit<1>   udp;               // the UDP header is there
    reason_t reason;
    bit<1>   wrong_checksum;

    // of a packet that arrives
    bit<1>   from_host;
    bit<1>   to_host;
    bit<8>   bound;             // 0: none
    bit<8>   header_bytes;
    bit<8>   format_flags;
    bit<16>  difference;        // of the lengths of IP and UDP
    bit<16>  payload;
    bit<16>  excess;            // bytes of the payload that are too many
    bit<16>  value_bytes;
    bit<16>  excess_values;     // more than a packet with a message header can have

    // of a pass
    bit<1>   taking;
    bit<1>   last;
    bit<1>   padded;            // tags behind the last value are not 0
    bit<32>  owner;             // of the row; then its difference from the packet
    cell_t   cell;
    bit<16>  found_tags;        // of the burst that is taken or given
    bit<16>  size23;
    bit<16>  size45;
    bit<16>  size67;
    bit<16>  bytes;
    bit<16>  marks01;
    bit<16>  marks23;
    bit<16>  marks45;
    bit<16>  marks67;
    bit<1>   odd;               // of each half, an odd number of bytes
    bit<1>   odd4;
    bit<1>   start;             // each half begins at an odd byte
    bit<1>   start4;

    // of the checksum
    bit<16>  sum;
    bit<16>  length;            // of UDP, which counts twice, in two containers
    bit<16>  length2;
    bit<16>  shim_count;
    bit<8>   shim_bound;
    bit<8>   shim_flags;
    bit<16>  tags;

    EACH_VALUE(VALUE_METADATA)
}

parser TosIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                        out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) {
            RECIRCULATION_PORT: parse_carried;
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
        ipv4_checksum.add(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.tos[7:2]) {
            (4, MARKED): parse_marked;
            (4, COMPRESSED): parse_compressed;
            default: accept;
        }
    }
    state parse_marked {
        meta.wrong_checksum = (bit<1>) ipv4_checksum.verify();
        meta.marked = 1;
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 5, 0, 0): parse_udp;
            (PROTOCOL_UDP, 5, _, _): fragment;
            (PROTOCOL_UDP, _, _, _): options;
            default: not_udp;
        }
    }
    state parse_udp {
        meta.reason = BAD_LENGTH;
        packet.extract(hdr.udp);
        meta.udp = 1;
        transition accept;
    }
    state not_udp { meta.reason = NOT_UDP; transition accept; }
    state options { meta.reason = OPTIONS; transition accept; }
    state fragment { meta.reason = FRAGMENT; transition accept; }

    state parse_compressed {
        meta.wrong_checksum = (bit<1>) ipv4_checksum.verify();
        transition select(hdr.ipv4.protocol, hdr.ipv4.ihl, hdr.ipv4.flags[0:0],
                          hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 5, 0, 0): parse_shim;
            default: accept;
        }
    }
    state parse_shim {
        meta.compressed = 1;
        packet.extract(hdr.udp);
        packet.extract(hdr.shim);
        meta.udp = 1;
        transition accept;
    }

    // -- between two passes ---------------------------------------------------------------------

    state parse_carried {
        meta.again = 1;
        packet.extract(hdr.carried);
        transition select(hdr.carried.mode) {
            PASS: accept;
            MALFORMED: accept;
            default: parse_headers;
        }
    }
    state parse_headers {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.shim);
        transition select(hdr.shim.flags) {
            FLAG_MESSAGE &&& FLAG_MESSAGE: parse_message;
            default: parse_values;
        }
    }
    state parse_message {
        packet.extract(hdr.message);
        transition parse_values;
    }
    state parse_values {
        transition select(hdr.carried.mode, hdr.carried.remaining) {
            (TAKE_WORDS, 1): words1;
            (TAKE_WORDS, 2): words2;
            (TAKE_WORDS, 3): words3;
            (TAKE_WORDS, 4): words4;
            (TAKE_WORDS, 5): words5;
            (TAKE_WORDS, 6): words6;
            (TAKE_WORDS, 7): words7;
            (TAKE_WORDS, _): words8;
            (TAKE_BURSTS, _): parse_tags;
            default: accept;
        }
    }

    // Of what is taken, nothing stays in the packet.
#define WORD(n) meta.value##n.wire = packet.lookahead<bit<32>>(); packet.advance(32);
    state words1 { WORD(0) transition accept; }
    state words2 { WORD(0) WORD(1) transition accept; }
    state words3 { WORD(0) WORD(1) WORD(2) transition accept; }
    state words4 { WORD(0) WORD(1) WORD(2) WORD(3) transition accept; }
    state words5 { WORD(0) WORD(1) WORD(2) WORD(3) WORD(4) transition accept; }
    state words6 { WORD(0) WORD(1) WORD(2) WORD(3) WORD(4) WORD(5) transition accept; }
    state words7 { WORD(0) WORD(1) WORD(2) WORD(3) WORD(4) WORD(5) WORD(6) transition accept; }
    state words8 {
        WORD(0) WORD(1) WORD(2) WORD(3) WORD(4) WORD(5) WORD(6) WORD(7) transition accept;
    }

    state parse_tags {
        meta.found_tags = packet.lookahead<bit<16>>();
        packet.advance(16);
        transition vector0;
    }
#define VECTOR(n, next) \
    state vector##n { \
        transition select(meta.found_tags TAG_OF(n)) { \
            0: next; \
            1: byte##n; \
            2: half##n; \
            3: whole##n; \
        } \
    } \
    state byte##n { \
        meta.value##n.first = packet.lookahead<bit<8>>(); \
        packet.advance(8); \
        transition next; \
    } \
    state half##n { \
        meta.value##n.first = packet.lookahead<bit<8>>(); \
        packet.advance(8); \
        meta.value##n.second = packet.lookahead<bit<8>>(); \
        packet.advance(8); \
        transition next; \
    } \
    state whole##n { WORD(n) transition next; }
    VECTOR(0, vector1)
    VECTOR(1, vector2)
    VECTOR(2, vector3)
    VECTOR(3, vector4)
    VECTOR(4, vector5)
    VECTOR(5, vector6)
    VECTOR(6, vector7)
    VECTOR(7, accept)
}

control TosIngress(inout headers_t hdr, inout metadata_t meta,
                   in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS_AND_BYTES) port_in;
    Counter<bit<32>, bit<1>>(1, CounterType_t.PACKETS) malformed;
    Counter<bit<32>, bit<1>>(1, CounterType_t.PACKETS) overtaken;
    Counter<bit<32>, bit<3>>(5, CounterType_t.PACKETS) tags;    // 4: vectors of tags

#define VALUE_INSTANCE(n) \
    Compression(16w1 << (2 * n)) compression##n; \
    Measurement() measurement##n; \
    Cells() cells##n; \
    Decompression() decompression##n; \
    Value() value##n;
    EACH_VALUE(VALUE_INSTANCE)
    Parities() first_half;
    Parities() second_half;

    // -- forwarding: as in tos_compress.p4 ------------------------------------------------------

    action drop() { hdr.carried.mode = DROP; }

    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst_addr = mac;
        hdr.carried.port = port;
    }

    table routes {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }

    action switch_to(bit<9> port) { hdr.carried.port = port; }

    action flood(bit<16> group) {
        hdr.carried.flooded = 1;
        for_tm.mcast_grp_a = group;
    }

    table stations {
        key = { hdr.ethernet.dst_addr : exact; }
        actions = { switch_to; flood; drop; }
        default_action = drop();
        size = 1024;
    }

    action host() { meta.from_host = 1; }

    table host_ports {
        key = { intrinsic.ingress_port : exact @name("port"); }
        actions = { host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    // -- what tos_compress.p4 looks up in egress, under the same names ---------------------------

    @name(".TosEgress.host") action to_host() { meta.to_host = 1; }

    @name(".TosEgress.to_host_ports") table to_host_ports {
        key = { hdr.carried.port : exact @name("port"); }
        actions = { to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    // The error stays below 2^-k.
    @name(".TosEgress.set_bound") action set_bound(bit<8> k) { meta.bound = k; }

    @name(".TosEgress.bounds") table bounds {
        key = { hdr.ipv4.dst_addr : lpm; }
        actions = { set_bound; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    @name(".TosEgress.set_format") action set_format(bit<8> header_bytes, bit<1> little_endian) {
        meta.header_bytes = header_bytes;
        meta.format_flags = 7w0 ++ little_endian;
    }

    @name(".TosEgress.formats") table formats {
        key = { hdr.udp.dst_port : exact; }
        actions = { set_format; }
        default_action = set_format(0, 0);
        size = 1024;
    }

    // -- a packet that arrives -------------------------------------------------------------------

    action measure() {
        meta.difference = hdr.ipv4.total_length |-| hdr.udp.length;
        meta.excess = hdr.udp.length |-| (UDP_BYTES + MAX_PAYLOAD_BYTES);
        meta.payload = hdr.udp.length |-| UDP_BYTES;
        meta.excess_values = hdr.shim.count |-| (MAX_WORDS - MESSAGE_WORDS);
    }

    action measure_values() { meta.value_bytes = meta.payload |-| (bit<16>) meta.header_bytes; }

    action pass_parsed() {
        hdr.carried.mode = PASS;
        hdr.carried.reason = meta.reason;
    }
    action pass(reason_t reason) {
        hdr.carried.mode = PASS;
        hdr.carried.reason = reason;
    }
    action pass_if_whole(reason_t reason) {
        hdr.carried.mode = PASS_IF_WHOLE;
        hdr.carried.reason = reason;
    }

    // The bursts and the shim must have less bytes than the values.
    action compress(bit<8> flags) {
        hdr.carried.mode = TAKE_WORDS;
        hdr.carried.left = meta.value_bytes - SHIM_BYTES;
        hdr.shim.setValid();
        hdr.shim.count = meta.value_bytes >> 2;
        hdr.shim.bound = meta.bound;
        hdr.shim.flags = meta.format_flags | flags;
        hdr.carried.remaining = meta.value_bytes >> 2;
    }

#define KNOWN_BOUND(k) \
    (_, 1, 20, _, 0, _, k, 0, 0) : pass_if_whole(NO_VALUES); \
    (_, 1, 20, _, 0, _, k, 0, _) : compress(0); \
    (_, 1, 20, _, 0, _, k, 16, 0) : pass_if_whole(NO_VALUES); \
    (_, 1, 20, _, 0, _, k, 16, _) : compress(FLAG_MESSAGE); \
    (_, 1, 20, _, 0, _, k, _, _) : pass_if_whole(UNKNOWN_FORMAT);

    @hidden table marked {
        key = {
            meta.to_host : ternary;
            meta.udp : ternary;
            meta.difference : ternary;
            hdr.udp.length : ternary;
            meta.excess : ternary;
            meta.wrong_checksum : ternary;
            meta.bound : ternary;
            meta.header_bytes : ternary;
            meta.value_bytes : ternary;
        }
        actions = { pass; pass_parsed; pass_if_whole; compress; }
        const default_action = pass(BAD_LENGTH);
        const entries = {
            (1, _, _, _, _, _, _, _, _) : pass(LOCAL);
            (_, 0, _, _, _, _, _, _, _) : pass_parsed();
            (_, 1, 20, 0 &&& 0xFFF8, _, _, _, _, _) : pass(BAD_LENGTH);
            (_, 1, 20, UDP_BYTES, _, _, _, _, _) : pass_if_whole(NO_VALUES);
            (_, 1, 20, 1 &&& 1, _, _, _, _, _) : pass_if_whole(NOT_WORDS);
            (_, 1, 20, 2 &&& 2, _, _, _, _, _) : pass_if_whole(NOT_WORDS);
            (_, 1, 20, _, 0, 1, _, _, _) : pass_if_whole(BAD_CHECKSUM);
            (_, 1, 20, _, 0, _, 0, _, _) : pass_if_whole(NO_BOUND);
            KNOWN_BOUND(6)
            KNOWN_BOUND(8)
            KNOWN_BOUND(10)
            (_, 1, 20, _, 0, _, _, _, _) : pass_if_whole(UNKNOWN_BOUND);
            (_, 1, 20, _, _, _, _, _, _) : pass_if_whole(TOO_LONG);
        }
        size = 32;
    }

    // One byte is left when as many as there are have been taken. An ALU adds an action's
    // parameter, but cannot subtract it, so before is negative.
    action restore(bit<16> before) {
        hdr.carried.mode = TAKE_BURSTS;
        hdr.carried.left = hdr.udp.length + before;
        hdr.carried.remaining = hdr.shim.count;
    }
    action refuse() { hdr.carried.mode = MALFORMED; }

#define BEFORE_BURSTS (16w1 - UDP_BYTES - SHIM_BYTES)
#define SOUND(k) \
    (1, 0, 20, k, 0 &&& 0xFE, 0 &&& 0xFFFC) : restore(BEFORE_BURSTS); \
    (1, 0, 20, k, 0 &&& 0xFE, MESSAGE_WORDS) : restore(BEFORE_BURSTS); \
    (1, 0, 20, k, FLAG_MESSAGE &&& 0xFE, 0) : restore(BEFORE_BURSTS - MESSAGE_BYTES);

    @hidden table compressed {
        key = {
            meta.udp : ternary;
            meta.wrong_checksum : ternary;
            meta.difference : ternary;
            hdr.shim.bound : ternary;
            hdr.shim.flags : ternary;
            meta.excess_values : ternary;
        }
        actions = { restore; refuse; }
        const default_action = refuse();
        const entries = {
            SOUND(6)
            SOUND(8)
            SOUND(10)
        }
        size = 16;
    }

    action arrive() {
        hdr.carried.setValid();
        hdr.carried.mode = FORWARD;
        hdr.carried.reason = 0;
        hdr.carried.first = 1;
        hdr.carried.odd = 0;
        hdr.carried.flooded = 0;
        hdr.carried.port = 0;
        hdr.carried.ingress_port = intrinsic.ingress_port;
        hdr.carried.burst = 0;
        hdr.carried.remaining = 0;
        hdr.carried.left = 0;
        hdr.carried.length = 0;
        hdr.carried.frame = 0;
        hdr.carried.sum = 0;
        hdr.carried.serial = 0;
    }

    action compare_owner() { meta.owner = meta.owner ^ hdr.carried.serial; }
    action find_cell() {
        meta.cell = hdr.carried.serial[ROW_BITS - 1:0] ++ hdr.carried.burst[BURST_BITS - 1:0];
    }

    // -- a pass ----------------------------------------------------------------------------------

    Register<bit<32>, bit<1>>(1) serials;
    Register<bit<32>, row_t>(1 << ROW_BITS) owners;
    // The tags of bursts that are to be given, and of those that were taken.
    Register<bit<16>, cell_t>(CELLS) new_tags;
    Register<bit<16>, cell_t>(CELLS) old_tags;

    RegisterAction<bit<32>, bit<1>, bit<32>>(serials) count_packet = {
        void apply(inout bit<32> serial, out bit<32> result) {
            serial = serial + 1;
            result = serial;
        }
    };
    RegisterAction<bit<32>, row_t, bit<32>>(owners) own = {
        void apply(inout bit<32> owner, out bit<32> result) {
            owner = hdr.carried.serial;
            result = owner;
        }
    };
    RegisterAction<bit<32>, row_t, bit<32>>(owners) read_owner = {
        void apply(inout bit<32> owner, out bit<32> result) { result = owner; }
    };

    RegisterAction<bit<16>, cell_t, bit<16>>(new_tags) store_new = {
        void apply(inout bit<16> tags) { tags = meta.marks01; }
    };
    RegisterAction<bit<16>, cell_t, bit<16>>(new_tags) load_new = {
        void apply(inout bit<16> tags, out bit<16> result) { result = tags; }
    };
    RegisterAction<bit<16>, cell_t, bit<16>>(old_tags) store_old = {
        void apply(inout bit<16> tags) { tags = meta.found_tags; }
    };
    RegisterAction<bit<16>, cell_t, bit<16>>(old_tags) load_old = {
        void apply(inout bit<16> tags, out bit<16> result) { result = tags; }
    };

    action keep_old() { store_old.execute(meta.cell); }
    action find_old() { meta.found_tags = load_old.execute(meta.cell); }

    @hidden table old_bursts {
        key = { hdr.carried.mode : exact; }
        actions = { keep_old; find_old; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_BURSTS : keep_old();
            GIVE_WORDS : find_old();
        }
        size = 2;
    }

    action keep_new() { store_new.execute(meta.cell); }
    action find_new() { meta.found_tags = load_new.execute(meta.cell); }

    @hidden table new_bursts {
        key = { hdr.carried.mode : exact; }
        actions = { keep_new; find_new; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_WORDS : keep_new();
            GIVE_BURSTS : find_new();
        }
        size = 2;
    }

    action begin_taking() { meta.taking = 1; }
    action begin_words() {
        begin_taking();
        meta.sum = hdr.udp.checksum;
        meta.length = hdr.udp.length;
        meta.length2 = hdr.udp.length;
    }
    action begin_bursts() {
        begin_words();
        meta.shim_count = hdr.shim.count;
        meta.shim_bound = hdr.shim.bound;
        meta.shim_flags = hdr.shim.flags;
    }
    action take_more() {
        begin_taking();
        meta.sum = ~hdr.carried.sum;
    }
    // The sum so far is taken away: its complement is added.
    action begin_giving_bursts(bit<1> odd) {
        meta.sum = hdr.carried.sum;
        hdr.carried.odd = odd;
        hdr.carried.length = hdr.udp.length - hdr.carried.left;
    }
    action begin_giving_back() {
        hdr.carried.mode = GIVE_BACK;
    }
    action begin_giving_words() {
        meta.sum = hdr.carried.sum;
        hdr.carried.odd = 0;
        hdr.carried.length = hdr.shim.count << 2;
    }
    action give_more() { meta.sum = ~hdr.carried.sum; }
    action lose() { hdr.carried.mode = OVERTAKEN; }

    @hidden table begins {
        key = {
            hdr.carried.mode : exact;
            hdr.carried.first : ternary;
            hdr.carried.left : ternary;
            from_parser.parser_err : ternary;
            meta.owner : ternary;
            meta.padded : ternary;
        }
        actions = {
            begin_words; begin_bursts; take_more; begin_giving_bursts; begin_giving_back;
            begin_giving_words; give_more; refuse; lose; @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, 1, _, 0, 0, _) : begin_words();
            (TAKE_WORDS, 0, _, 0, 0, _) : take_more();
            (TAKE_WORDS, _, _, _, _, _) : lose();     // egress has seen that no bytes are missing
            (TAKE_BURSTS, 1, _, 0, 0, 0) : begin_bursts();
            (TAKE_BURSTS, 0, _, 0, 0, 0) : take_more();
            (TAKE_BURSTS, _, _, 0, 0, _) : refuse();
            (TAKE_BURSTS, _, _, 0, _, _) : lose();
            (TAKE_BURSTS, _, _, _, _, _) : refuse();
            (GIVE_BURSTS, 1, 0, _, 0, _) : begin_giving_back();
            (GIVE_BURSTS, 1, 0 &&& 1, _, 0, _) : begin_giving_bursts(0);
            (GIVE_BURSTS, 1, 1 &&& 1, _, 0, _) : begin_giving_bursts(1);
            (GIVE_BURSTS, 0, _, _, 0, _) : give_more();
            (GIVE_BURSTS, _, _, _, _, _) : lose();
            (GIVE_WORDS, 1, 1, _, 0, _) : begin_giving_words();
            (GIVE_WORDS, 1, _, _, 0, _) : refuse();
            (GIVE_WORDS, 0, _, _, 0, _) : give_more();
            (GIVE_WORDS, _, _, _, _, _) : lose();
            (GIVE_BACK, _, _, _, 0, _) : give_more();
            (GIVE_BACK, _, _, _, _, _) : lose();
        }
        size = 32;
    }

    action shape(bit<1> last, bit<8> present) {
        meta.last = last;
#define PRESENT(n) meta.value##n.present = present[n:n];
        EACH_VALUE(PRESENT)
    }

#define LAST_TAKEN(mode, n) (mode, _, _, n, _) : shape(1, (8w1 << n) - 1);
#define FIRST_GIVEN(n) \
    (_, 1, n, _, 0) : shape(1, (8w1 << n) - 1); \
    (_, 1, n, _, _) : shape(0, (8w1 << n) - 1);
#define TAKEN(mode) \
    LAST_TAKEN(mode, 1) LAST_TAKEN(mode, 2) LAST_TAKEN(mode, 3) LAST_TAKEN(mode, 4) \
    LAST_TAKEN(mode, 5) LAST_TAKEN(mode, 6) LAST_TAKEN(mode, 7) \
    (mode, _, _, 8, _) : shape(1, 0xFF); \
    (mode, _, _, _, _) : shape(0, 0xFF);

    // Whether the pass is the last one that takes or gives, and how many values it has.
    @hidden table shapes {
        key = {
            hdr.carried.mode : ternary;
            hdr.carried.first : ternary;
            hdr.shim.count[2:0] : ternary @name("last_values");
            hdr.carried.remaining : ternary;
            hdr.carried.burst : ternary;
        }
        actions = { shape; }
        const default_action = shape(0, 0xFF);
        const entries = {
            TAKEN(TAKE_WORDS)
            TAKEN(TAKE_BURSTS)
            FIRST_GIVEN(1) FIRST_GIVEN(2) FIRST_GIVEN(3) FIRST_GIVEN(4) FIRST_GIVEN(5)
            FIRST_GIVEN(6) FIRST_GIVEN(7)
            (_, _, _, _, 0) : shape(1, 0xFF);
        }
        size = 64;
    }

    action wrong_padding() { meta.padded = 1; }

    // Tags behind the last value must be 0.
    @hidden table paddings {
        key = {
            hdr.carried.mode : exact;
            meta.last : exact;
            hdr.carried.remaining : ternary;
            meta.found_tags : ternary;
        }
        actions = { wrong_padding; NoAction; }
        const default_action = NoAction();
        const entries = {
            (TAKE_BURSTS, 1, 1, 0 &&& 0xFFFC) : NoAction();
            (TAKE_BURSTS, 1, 2, 0 &&& 0xFFF0) : NoAction();
            (TAKE_BURSTS, 1, 3, 0 &&& 0xFFC0) : NoAction();
            (TAKE_BURSTS, 1, 4, 0 &&& 0xFF00) : NoAction();
            (TAKE_BURSTS, 1, 5, 0 &&& 0xFC00) : NoAction();
            (TAKE_BURSTS, 1, 6, 0 &&& 0xF000) : NoAction();
            (TAKE_BURSTS, 1, 7, 0 &&& 0xC000) : NoAction();
            (TAKE_BURSTS, 1, 8, _) : NoAction();
            (TAKE_BURSTS, 1, _, _) : wrong_padding();
        }
        size = 16;
    }

    // -- bytes, tags and parities of a burst -----------------------------------------------------

    action add_pairs() {
        meta.bytes = meta.value0.size + meta.value1.size;
        meta.size23 = meta.value2.size + meta.value3.size;
        meta.size45 = meta.value4.size + meta.value5.size;
        meta.size67 = meta.value6.size + meta.value7.size;
        meta.marks01 = meta.value0.mark + meta.value1.mark;
        meta.marks23 = meta.value2.mark + meta.value3.mark;
        meta.marks45 = meta.value4.mark + meta.value5.mark;
        meta.marks67 = meta.value6.mark + meta.value7.mark;
    }
    action add_fours() {
        meta.bytes = meta.bytes + meta.size23;
        meta.size45 = meta.size45 + meta.size67;
        meta.marks01 = meta.marks01 + meta.marks23;
        meta.marks45 = meta.marks45 + meta.marks67;
    }
    action add_eights() {
        meta.bytes = meta.bytes + meta.size45;
        meta.marks01 = meta.marks01 + meta.marks45;
    }
    action add_tags() { meta.bytes = meta.bytes + 2; }
    action use_up() { hdr.carried.left = hdr.carried.left |-| meta.bytes; }

    action give_tags() {
        hdr.tags.setValid();
        hdr.tags.vector = meta.found_tags;
        meta.tags = meta.found_tags;
    }
    action take_tags() { meta.tags = meta.found_tags; }

    // Taken bursts follow those before, given ones precede those behind.
    action set_start(bit<1> start, bit<1> start4, bit<1> odd) {
        meta.start = start;
        meta.start4 = start4;
        hdr.carried.odd = odd;
    }

#define START(odd, first, second) \
    (TAKE_BURSTS, odd, first, second) : set_start(odd, odd ^ first, odd ^ first ^ second); \
    (GIVE_BURSTS, odd, first, second) : \
        set_start(odd ^ first ^ second, odd ^ second, odd ^ first ^ second);
    @hidden table starts {
        key = {
            hdr.carried.mode : exact;
            hdr.carried.odd : exact;
            meta.odd : exact;
            meta.odd4 : exact;
        }
        actions = { set_start; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            START(1w0, 1w0, 1w0) START(1w0, 1w0, 1w1) START(1w0, 1w1, 1w0) START(1w0, 1w1, 1w1)
            START(1w1, 1w0, 1w0) START(1w1, 1w0, 1w1) START(1w1, 1w1, 1w0) START(1w1, 1w1, 1w1)
        }
        size = 16;
    }

    // A vector at an odd byte counts in the checksum with its bytes in the other places.
    action rotate_tags() { meta.tags = meta.tags[7:0] ++ meta.tags[15:8]; }
#define ROTATE(n, start) \
    action rotate##n() { \
        bit<8> first = meta.value##n.first; \
        meta.value##n.first = meta.value##n.second; \
        meta.value##n.second = first; \
        meta.value##n.wire = meta.value##n.wire[7:0] ++ meta.value##n.wire[31:8]; \
        meta.value##n.rest = meta.value##n.rest[7:0] ++ meta.value##n.rest[15:8]; \
    } \
    @hidden table odd##n { \
        key = { meta.value##n.odd : exact; meta.start : exact; } \
        actions = { rotate##n; @defaultonly NoAction; } \
        const default_action = NoAction(); \
        const entries = { (0, 1) : rotate##n(); (1, 0) : rotate##n(); } \
        size = 2; \
    }
    ROTATE(0, start) ROTATE(1, start) ROTATE(2, start) ROTATE(3, start)
    ROTATE(4, start4) ROTATE(5, start4) ROTATE(6, start4) ROTATE(7, start4)

    // -- what becomes of the packet --------------------------------------------------------------

    action take_next() {
        hdr.carried.first = 0;
        hdr.carried.burst = hdr.carried.burst + 1;
        hdr.carried.remaining = hdr.carried.remaining - 8;
    }
    action turn(mode_t mode) {
        hdr.carried.first = 1;
        hdr.carried.mode = mode;
    }
    action give_next() {
        hdr.carried.first = 0;
        hdr.carried.burst = hdr.carried.burst - 1;
    }
    action set_lengths(bit<16> of_udp, bit<16> of_ipv4) {
        meta.length = hdr.carried.length + of_udp;
        meta.length2 = hdr.carried.length + of_udp;
        hdr.udp.length = hdr.carried.length + of_udp;
        hdr.ipv4.total_length = hdr.carried.length + of_ipv4;
    }
    action shorten() {
        hdr.carried.mode = SHORTENED;
        set_lengths(0, IPV4_BYTES);
        hdr.ipv4.tos[7:2] = COMPRESSED;
        meta.shim_count = hdr.shim.count;
        meta.shim_bound = hdr.shim.bound;
        meta.shim_flags = hdr.shim.flags;
    }
    action restored(bit<16> of_udp, bit<16> of_ipv4) {
        hdr.carried.mode = RESTORED;
        set_lengths(of_udp, of_ipv4);
        hdr.ipv4.tos[7:2] = MARKED;
        hdr.shim.setInvalid();
    }
    action given_back() {
        hdr.carried.mode = PASS;
        hdr.carried.reason = NOT_SHORTER;
        hdr.shim.setInvalid();
    }

    @hidden table ends {
        key = {
            hdr.carried.mode : exact;
            meta.last : exact;
            hdr.message.isValid() : ternary;
        }
        actions = {
            take_next; turn; give_next; shorten; restored; given_back; @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, 0, _) : take_next();
            (TAKE_WORDS, 1, _) : turn(GIVE_BURSTS);
            (TAKE_BURSTS, 0, _) : take_next();
            (TAKE_BURSTS, 1, _) : turn(GIVE_WORDS);
            (GIVE_BURSTS, 0, _) : give_next();
            (GIVE_BURSTS, 1, _) : shorten();
            (GIVE_WORDS, 0, _) : give_next();
            (GIVE_WORDS, 1, false) : restored(UDP_BYTES, IPV4_BYTES + UDP_BYTES);
            (GIVE_WORDS, 1, true) :
                restored(UDP_BYTES + MESSAGE_BYTES, IPV4_BYTES + UDP_BYTES + MESSAGE_BYTES);
            (GIVE_BACK, 0, _) : give_next();
            (GIVE_BACK, 1, _) : given_back();
        }
        size = 16;
    }

    action recirculate() { for_tm.ucast_egress_port = RECIRCULATION_PORT; }
    action recirculate_at_once() {
        for_tm.ucast_egress_port = RECIRCULATION_PORT;
        for_tm.bypass_egress = 1;
    }
    action leave() { for_tm.ucast_egress_port = hdr.carried.port; }
    action drop_packet() { for_deparser.drop_ctl = 1; }

    @hidden table ways {
        key = { hdr.carried.mode : exact; meta.again : ternary; hdr.carried.flooded : ternary; }
        actions = { recirculate; recirculate_at_once; leave; drop_packet; NoAction; }
        const default_action = recirculate_at_once();
        const entries = {
            (FORWARD, _, 1) : NoAction();
            (FORWARD, _, _) : leave();
            (PASS, _, _) : leave();
            (PASS_IF_WHOLE, _, _) : leave();
            (SHORTENED, _, _) : leave();
            (RESTORED, _, _) : leave();
            (DROP, _, _) : drop_packet();
            (MALFORMED, _, _) : drop_packet();
            (OVERTAKEN, _, _) : drop_packet();
            (TAKE_WORDS, 0, _) : recirculate();
            (TAKE_BURSTS, 0, _) : recirculate();
        }
        size = 16;
    }

    apply {
        if (meta.again == 0) {
            arrive();
            port_in.count(intrinsic.ingress_port, (bit<32>) FCS_BYTES);
            host_ports.apply();
            if (hdr.ipv4.isValid()) {
                routes.apply();
                to_host_ports.apply();
                bounds.apply();
                if (formats.apply().miss) {
                    if (hdr.udp.dst_port == STREAM_PORT) { set_format((bit<8>) MESSAGE_BYTES, 0); }
                }
                measure();
                measure_values();
                if (hdr.carried.mode == FORWARD) {
                    if (meta.marked == 1 && meta.from_host == 1) {
                        marked.apply();
                    } else if (meta.compressed == 1 && meta.from_host == 0 && meta.to_host == 1) {
                        compressed.apply();
                    }
                }
            } else if (hdr.ethernet.isValid()) {
                stations.apply();
            } else {
                drop();
            }
        } else if (hdr.shim.isValid()) {
            // What does not depend on the registers comes before them.
            if (hdr.carried.mode == TAKE_WORDS) {
#define COMPRESSION_APPLY(n) \
                compression##n.apply(meta.value##n, hdr.shim.bound, hdr.shim.flags[0:0]);
                EACH_VALUE(COMPRESSION_APPLY)
            } else if (hdr.carried.mode == TAKE_BURSTS) {
#define MEASUREMENT_APPLY(n) measurement##n.apply(meta.value##n, meta.found_tags TAG_OF(n));
                EACH_VALUE(MEASUREMENT_APPLY)
            }

            if (hdr.carried.first == 1
                    && (hdr.carried.mode == TAKE_WORDS || hdr.carried.mode == TAKE_BURSTS)) {
                hdr.carried.serial = count_packet.execute(0);
                meta.owner = own.execute(hdr.carried.serial[ROW_BITS - 1:0]);
            } else {
                meta.owner = read_owner.execute(hdr.carried.serial[ROW_BITS - 1:0]);
            }
            compare_owner();
            find_cell();
            shapes.apply();
            paddings.apply();
            begins.apply();

            old_bursts.apply();
#define CELLS_APPLY(n) \
            cells##n.apply(meta.value##n, hdr.carried.mode, meta.found_tags TAG_OF(n), meta.cell);
            EACH_VALUE(CELLS_APPLY)
#define DECOMPRESSION_APPLY(n) \
            decompression##n.apply(meta.value##n, hdr.carried.mode, meta.found_tags TAG_OF(n), \
                hdr.shim.bound);
            EACH_VALUE(DECOMPRESSION_APPLY)

            add_pairs();
            add_fours();
            add_eights();
            new_bursts.apply();
#define VALUE_APPLY(n) \
            value##n.apply(hdr.value##n, meta.value##n, meta.found_tags TAG_OF(n), \
                hdr.carried.mode, hdr.shim.flags[0:0]);
            EACH_VALUE(VALUE_APPLY)
            add_tags();
            if (meta.taking == 1) { use_up(); }
            if (hdr.carried.mode == GIVE_BURSTS) {
                tags.count(4);
                give_tags();
            } else if (hdr.carried.mode == TAKE_BURSTS) {
                take_tags();
            }
            first_half.apply(meta.value0, meta.value1, meta.value2, meta.value3, meta.odd);
            second_half.apply(meta.value4, meta.value5, meta.value6, meta.value7, meta.odd4);
            starts.apply();
            if (meta.start == 1) { rotate_tags(); }
#define ROTATE_APPLY(n) odd##n.apply();
            EACH_VALUE(ROTATE_APPLY)
            ends.apply();
        }
        if (hdr.carried.mode == MALFORMED) { malformed.count(0); }
        if (hdr.carried.mode == OVERTAKEN) { overtaken.count(0); }
        ways.apply();
    }
}

control TosIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() sum;

    apply {
        hdr.carried.sum = sum.update({
#define BYTES_OF(n) \
            , meta.value##n.wire, meta.value##n.first, meta.value##n.second, meta.value##n.rest
            meta.sum, meta.length, meta.length2, meta.shim_count, meta.shim_bound, meta.shim_flags,
            meta.tags EACH_VALUE(BYTES_OF)
        });
        packet.emit(hdr);
    }
}

// -- egress: the frame's length, checksums and counters -------------------------------------------

struct egress_headers_t {
    carried_t  carried;
    ethernet_t ethernet;
    ipv4_t     old_ipv4;    // unchanged
    ipv4_t     ipv4;        // changed
    udp_t      udp;
    shim_t     shim;
}

struct egress_metadata_t {
    bit<16> inside;         // bytes of the frame behind the Ethernet header
    bit<16> missing;        // of the IP packet
    bit<9>  ports;          // that it came in and goes out by: 0 if they are the same
}

// A frame that is longer counts as one of so many bytes.
#define MOST_BYTES 2047
typedef bit<11> size_t;

parser TosEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta,
                       out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.carried);
        transition select(hdr.carried.mode) {
            TAKE_WORDS: parse_words;
            TAKE_BURSTS: parse_old;
            PASS_IF_WHOLE: parse_old;
            SHORTENED: parse_new;
            RESTORED: parse_new;
            default: accept;
        }
    }
    state parse_words {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.old_ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.shim);
        transition accept;
    }
    state parse_old {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.old_ipv4);
        transition accept;
    }
    state parse_new {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        transition accept;
    }
}

control TosEgress(inout egress_headers_t hdr, inout egress_metadata_t meta,
                  in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                  inout egress_intrinsic_metadata_for_output_port_t for_port) {
    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS_AND_BYTES) port_out;
    // Packets by the bytes of their frames before.
    Counter<bit<32>, size_t>(MOST_BYTES + 1, CounterType_t.PACKETS) compressed_sizes;
    Counter<bit<32>, size_t>(MOST_BYTES + 1, CounterType_t.PACKETS) decompressed_sizes;
    Counter<bit<32>, reason_t>(16, CounterType_t.PACKETS) passed;

    action find_ports() { meta.ports = hdr.carried.ingress_port ^ intrinsic.egress_port; }

    action find_frame(bit<16> before) { hdr.carried.frame = intrinsic.pkt_length - before; }
    action find_inside() { meta.inside = hdr.carried.frame - ETHERNET_BYTES; }
    action find_missing() { meta.missing = hdr.old_ipv4.total_length |-| meta.inside; }

    action pass_on() {
        hdr.carried.mode = PASS;
        hdr.carried.reason = BAD_LENGTH;
        hdr.shim.setInvalid();
    }
    action refuse() { hdr.carried.mode = MALFORMED; }
    action blame_length() { hdr.carried.reason = BAD_LENGTH; }

    @hidden table too_short {
        key = { hdr.carried.mode : exact; meta.missing : ternary; }
        actions = { pass_on; refuse; blame_length; NoAction; }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, 0) : NoAction();
            (TAKE_WORDS, _) : pass_on();
            (TAKE_BURSTS, 0) : NoAction();
            (TAKE_BURSTS, _) : refuse();
            (PASS_IF_WHOLE, 0) : NoAction();
            (PASS_IF_WHOLE, _) : blame_length();
        }
        size = 8;
    }

    action limit_size() { hdr.carried.frame = MOST_BYTES; }

    action drop_packet() { for_deparser.drop_ctl = 1; }

    apply {
        find_ports();
        if (hdr.shim.isValid()) {
            find_frame(CARRIED_BYTES + SHIM_BYTES + FCS_BYTES);
        } else if (hdr.old_ipv4.isValid()) {
            find_frame(CARRIED_BYTES + FCS_BYTES);
        }
        find_inside();
        find_missing();
        too_short.apply();
        if (hdr.carried.frame[15:11] != 0) { limit_size(); }
        if (hdr.carried.mode == SHORTENED) {
            compressed_sizes.count(hdr.carried.frame[10:0]);
        } else if (hdr.carried.mode == RESTORED) {
            decompressed_sizes.count(hdr.carried.frame[10:0]);
        } else if (hdr.carried.mode == PASS || hdr.carried.mode == PASS_IF_WHOLE) {
            if (intrinsic.egress_port != RECIRCULATION_PORT) { passed.count(hdr.carried.reason); }
        }
        if (hdr.ipv4.isValid() && hdr.udp.checksum != 0) {
            hdr.udp.checksum = hdr.carried.sum;
            if (hdr.udp.checksum == 0) { hdr.udp.checksum = 0xFFFF; }
        }
        if (intrinsic.egress_port != RECIRCULATION_PORT) {
            if (hdr.carried.flooded == 1 && meta.ports == 0) {
                drop_packet();          // flooded, but not back
            } else {
                port_out.count(intrinsic.egress_port, (bit<32>) (CARRIED_BYTES + FCS_BYTES));
            }
            hdr.carried.setInvalid();
        }
    }
}

control TosEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({ IPV4_FIELDS });
        }
        packet.emit(hdr);
    }
}

Pipeline(TosIngressParser(), TosIngress(), TosIngressDeparser(),
         TosEgressParser(), TosEgress(), TosEgressDeparser()) pipe;

Switch(pipe) main;
