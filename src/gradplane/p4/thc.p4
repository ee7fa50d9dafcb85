// In-network aggregation of THC's compressed gradients (THC, NSDI '24, section 6 and appendix C).
//
// Workers send packets of codes of 1, 2, 4 or 8 bits; the switch looks every code up in its job's table, adds the
// values to the sums of the packet's slot, and multicasts the sums when enough workers are in. A
// packet has more codes than one pass through the pipeline can handle, so it recirculates: pass p
// handles codes 128p to 128p+127 and replaces them by the sums so far.
//
//   job worker port --> members --> workers, quorum, slots, group, bit      (never from the packet)
//   slot, pass      --> cell    --> epoch, round, bitmap, count, closed, norm, and 128 sums
//
// Switches in levels sum one job; a leaf's children are workers, and a switch's above it are switches.
// A switch with a parent sends it a closed cell as a partial, whose sums are added there as they are;
// the root's result comes back from the parent's port, and is passed on:
//
//   job port hop    --> parents --> group of all children, or the port of one
//
// A switch may have several parents, each of other slots:
//
//   job slot        --> uplinks --> the slot's parent, where it is not the one of the members
//
// What switches say to each other has a path, a stack of the numbers of children plus 1, on which
// an answer finds back; an empty one means all children. Upwards it is in the place of the bitmap (a
// packet may not grow by more than its sums in BMv2), downwards behind the header.
//
// A header whose checksum is wrong is counted and dropped. A packet of another epoch than the job's
// is answered with the job's. A cell of an earlier epoch is unused: it takes any round. Otherwise a
// round lower than the cell's is answered with a straggler notice, and a higher one restarts the
// cell: any, or the next only where the job says that no round is ever left out. Rounds are serial
// numbers: a is higher than b if a - b is above 0 as a signed number.
//
// At the quorum the cell closes: from then on it is only read. The packet that closes the last pass
// multicasts the result; the sender of one that finds every pass closed gets it alone. With a parent,
// both go to it instead, the second with its path. Where some switch of the job closes without all of
// its children, a packet that an open cell does not take, since it is counted or an earlier pass left
// it out, goes up as a question, as higher up it may be closed.
//
// Codes may name the only child that needs their sums (reduce-scatter). At the children of the
// switch the others get a result without sums; between switches results are whole.
//
// With the macro NONZERO_BLOCKS, codes that repeat their first eight bytes, as those of zeros do, come
// as a header with these bytes in the place of the bitmap; the switch adds what they stand for. Where
// no child sent more, the sums repeat, too, and a worker gets the first of them.

#include <core.p4>
#include <v1model.p4>

#include "include/v1model_aggregation.p4"
#include "include/equal_ways.p4"

// The sizes of a packet's codes and sums. Those that repeat, with the flag, have a period of eight
// bytes of codes.
#ifdef NONZERO_BLOCKS
#define REPEATED_BYTES (8 * SUM_BITS / CODE_BITS)
#define MAY_REPEAT FLAG_REPEATS
#define CODES_SENT ((hdr.agg.flags & FLAG_REPEATS) != 0 ? 16w0 : 16w0 + CODES_BYTES)
#define SUMS_SENT ((hdr.agg.flags & FLAG_REPEATS) != 0 ? 16w0 + REPEATED_BYTES : 16w0 + SUMS_BYTES)
#else
#define MAY_REPEAT 0
#define CODES_SENT (16w0 + CODES_BYTES)
#define SUMS_SENT (16w0 + SUMS_BYTES)
#endif

const bit<8> PARENT = 255;          // its number among the receivers; those of others are below

// Precedes a packet between two passes: a Tofino has no field lists.
header recirculation_t {
    bit<9>  ingress_port;
    bit<1>  complete;       // every pass so far was closed when read
    bit<1>  collecting;     // only reads: some passes were read before they closed
    bit<1>  closing;        // collecting, and has closed the last pass
    bit<1>  counted;        // the sender is in the sums of the pass before
    bit<11> unused;
}

struct headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
    aggregation_t   agg;
    path_t          path;
    done_t[PASSES - 1] done;
    sums_t          sums;
    codes_t         codes;
}

struct metadata_t {
    verdict_t verdict;
    bit<1>  local;          // addressed to the switch itself
    bit<1>  header_only;    // the answer has no payload
    bit<1>  again;          // after an earlier pass
    bit<8>  passes_left;    // parser: results of earlier passes still to extract
    bit<9>  port;           // ingress port, before any recirculation
    bit<8>  sender;
    bit<8>  receiver;

    // of equal ways, from the table of routes
    bit<32> ways;           // their group; 0: there is one
    bit<16> count_of_ways;
    bit<32> factor;

    // of the sender, from the table of members
    bit<1>  member;
    bit<8>  workers;
    bit<8>  quorum;
    bit<16> slot_base;
    bit<16> slots;
    bit<16> group;
    bit<64> bit_of_worker;
    bit<8>  epoch;
    bit<1>  next_only;      // a cell takes its round and the next

    // of this switch in the job's tree
    bit<1>  adds;           // the sender is a switch (of what is passed down: all children are)
    bit<1>  has_parent;
    bit<1>  asks;           // some switch of the job closes without all of its children
    bit<8>  number;         // its own, at its parent
    bit<9>  parent;         // the port to it
    bit<8>  above;          // its number among the receivers
    bit<1>  from_parent;
    bit<64> path;

    // of the cell
    bit<32> cell;
    bit<32> round;
    bit<64> bitmap;
    bit<8>  count;          // children
    bit<15> summed;         // workers
    bit<1>  closed;
    bit<8>  owner;          // plus 1: the child that needs the sums; 0: all do
    bit<32> norm;
#ifdef NONZERO_BLOCKS
    bit<1>  repeats;        // the sums do
#endif
    update_t update;
    bit<1>  closing;        // this packet closed the cell (collecting: the last pass)
    bit<1>  complete;
    bit<1>  collecting;
    bit<1>  counted;
    bit<1>  duplicate;
    event_t event;
#ifdef ECN_THRESHOLD
    ecn_t   ecn;            // of the packets that the answer is about
#endif
}

parser ThcParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
#include "include/v1model_parser.p4"

    state parse_aggregation {
        packet.extract(hdr.agg);
        meta.passes_left = hdr.agg.pass;
        transition select(hdr.agg.type) {
            TYPE_CODES: parse_payload;
            default: parse_other;
        }
    }
    state parse_other {
        transition select(hdr.agg.flags[3:3], hdr.agg.type) {
            (1, TYPE_PARTIAL_SUMS): parse_payload;
            (1, TYPE_NORM): accept;
            (1, TYPE_QUESTION): accept;
            (1, _): parse_path;
            default: accept;
        }
    }
    state parse_path {
        packet.extract(hdr.path);
        meta.path = hdr.path.hops;
        transition accept;
    }
    state parse_payload {
        transition select(meta.again) {
            1: parse_earlier;
            default: parse_lanes;
        }
    }
    state parse_earlier {
        transition select(meta.passes_left) {
            0: parse_current;
            default: parse_done;
        }
    }
    state parse_done {
        packet.extract(hdr.done.next);
        meta.passes_left = meta.passes_left - 1;
        transition parse_earlier;
    }
    state parse_current {
        transition select(hdr.recirculation.collecting) {
            1: accept;
            default: parse_lanes;
        }
    }
    state parse_lanes {
        transition select(hdr.agg.type) {
#ifdef NONZERO_BLOCKS
            TYPE_CODES: parse_all_codes;
#else
            TYPE_CODES: parse_codes;
#endif
            default: parse_sums;
        }
    }
#ifdef NONZERO_BLOCKS
    state parse_all_codes {
        transition select(hdr.agg.flags[6:6]) {
            0: parse_codes;
            default: accept;
        }
    }
#endif
    state parse_sums {
        packet.extract(hdr.sums);
        transition accept;
    }
    state parse_codes {
        packet.extract(hdr.codes);
        transition accept;
    }
}

control ThcVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ThcIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    // For each slot and pass.
    // From the high bits: owner 8, epoch 8, count 8, summed 15, closed 1.
    register<bit<40>>(CELLS) slot_state;
    register<bit<32>>(CELLS) slot_round;
    register<bit<64>>(CELLS) slot_bitmap;
    register<bit<32>>(CELLS) slot_norm;

    // For each slot's norm exchange.
    register<bit<8>>(SLOTS)  norm_epoch;
    register<bit<32>>(SLOTS) norm_round;
    register<bit<64>>(SLOTS) norm_bitmap;
    register<bit<8>>(SLOTS)  norm_count;
    register<bit<1>>(SLOTS)  norm_closed;
    register<bit<32>>(SLOTS) norm_max;

#ifdef ECN_THRESHOLD
    register<ecn_t>(SLOTS)   slot_ecn;
#endif
#ifdef NONZERO_BLOCKS
    register<bit<1>>(SLOTS)  slot_repeats;
#endif

    counter(4096, CounterType.packets) events;
#include "include/v1model_arrivals.p4"

    // -- members -------------------------------------------------------------------------------

    action admit(bit<8> workers, bit<8> quorum, bit<16> slot_base, bit<16> slots, bit<16> group,
                 bit<64> worker_bit, bit<8> epoch, bit<1> next_only) {
        meta.member = 1;
        meta.epoch = epoch;
        meta.next_only = next_only;
        meta.workers = workers;
        meta.quorum = quorum;
        meta.slot_base = slot_base;
        meta.slots = slots;
        meta.group = group;
        meta.bit_of_worker = worker_bit;
    }

    // As a child of a switch that is not alone in its job. parent: a port; number: the switch's there.
    action admit_in_tree(bit<8> workers, bit<8> quorum, bit<16> slot_base, bit<16> slots,
                         bit<16> group, bit<64> worker_bit, bit<8> epoch, bit<1> next_only,
                         bit<1> adds, bit<1> has_parent, bit<9> parent, bit<8> number, bit<1> asks) {
        admit(workers, quorum, slot_base, slots, group, worker_bit, epoch, next_only);
        meta.adds = adds;
        meta.path = adds == 1 ? hdr.agg.bitmap : 0;
        meta.has_parent = has_parent;
        meta.parent = parent;
        meta.above = PARENT;
        meta.number = number;
        meta.asks = asks;
    }

    table members {
        key = {
            hdr.agg.job : exact @name("job");
            hdr.agg.worker : exact @name("worker");
            meta.port : exact @name("port");
        }
        actions = { admit; admit_in_tree; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    // -- packets from the parent ---------------------------------------------------------------

    // To one child where the path has its number, else to the group.
    action pass_down(bit<16> slot_base, bit<16> slots, bit<16> group, bit<9> port, bit<8> epoch,
                     bit<1> adds) {
        meta.from_parent = 1;
        meta.has_parent = 1;
        meta.parent = standard_metadata.ingress_port;
        meta.slot_base = slot_base;
        meta.slots = slots;
        meta.group = group;
        meta.port = port;
        meta.epoch = epoch;
        meta.adds = adds;
    }

    table parents {
        key = {
            hdr.agg.job : exact @name("job");
            meta.port : exact @name("port");
            hdr.path.hops[7:0] : exact @name("hop");
        }
        actions = { pass_down; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    // -- several parents -----------------------------------------------------------------------

    action go_up(bit<9> parent, bit<8> number, bit<8> receiver) {
        meta.parent = parent;
        meta.number = number;
        meta.above = receiver;
    }

    table uplinks {
        key = {
            hdr.agg.job : exact @name("job");
            hdr.agg.slot : exact @name("slot");
        }
        actions = { go_up; @defaultonly NoAction; }
        const default_action = NoAction();
        size = SLOTS;
    }

    // Of the cell: its state word, the epoch that used it last, and the packet's round less its own.
    bit<40> state;
    bit<8>  cell_epoch;
    bit<32> ahead;
    bit<16> check;      // of the header: 0 if its checksum is right

    // -- answers -------------------------------------------------------------------------------

    action fill_in(bit<4> type) {
        hdr.agg.type = type;
        hdr.agg.flags = 0;
        hdr.agg.pass = 0;
        hdr.agg.worker = 0;
        hdr.agg.count = 1w0 ++ meta.summed;
        hdr.agg.epoch = meta.epoch;
        hdr.agg.round = meta.round;
        hdr.agg.bitmap = meta.bitmap;
        hdr.agg.norm = meta.norm;
    }

    action answer(verdict_t verdict, bit<4> type, bit<1> header_only) {
        fill_in(type);
        meta.verdict = verdict;
        meta.header_only = header_only;
    }

    action push() { meta.path = meta.path[55:0] ++ (meta.sender + 1); }

    action up(bit<4> type, bit<1> header_only) { answer(UP, type, header_only); }

    action ask_parent(bit<8> flags) {
        hdr.agg.type = TYPE_QUESTION;
        hdr.agg.flags = flags;
        hdr.agg.pass = 0;
        meta.verdict = UP;
        meta.header_only = 1;
    }

    action compare_round() { ahead = hdr.agg.round - meta.round; }

    action empty_cell() {
        meta.round = 0;
        meta.bitmap = 0;
        meta.count = 0;
        meta.summed = 0;
        meta.closed = 0;
        meta.owner = 0;
        meta.norm = 0;
    }

    action answer_status(bit<8> flags) {
        answer(ANSWER, TYPE_STATUS, 1);
        hdr.agg.flags = flags | (7w0 ++ meta.closed) << 1;
    }

    apply {
        check = 0;
#ifdef ECN_THRESHOLD
        meta.ecn = hdr.ipv4.tos[1:0];
#endif
        mark_to_drop(standard_metadata);
        meta.port = standard_metadata.ingress_port;
        if (hdr.recirculation.isValid()) {
            meta.port = hdr.recirculation.ingress_port;
            meta.complete = hdr.recirculation.complete;
            meta.collecting = hdr.recirculation.collecting;
            meta.closing = hdr.recirculation.closing;
            meta.counted = hdr.recirculation.counted;
            meta.local = 1;
        } else {
            port_in.count((bit<32>) standard_metadata.ingress_port);
            meta.complete = 1;
            meta.counted = 1;
            if (hdr.agg.isValid()) {
                if (hdr.path.isValid()) {
                    hash(check, HashAlgorithm.csum16, 16w0,
                         { HEADER_FIELDS, hdr.agg.checksum, hdr.path.hops }, 32w65536);
                } else {
                    hash(check, HashAlgorithm.csum16, 16w0, { HEADER_FIELDS, hdr.agg.checksum },
                         32w65536);
                }
            }
            if (check != 0) {
                damaged.count((bit<32>) standard_metadata.ingress_port);
            } else if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 0
                    && hdr.ipv4.ttl != 0) {
                routes.apply();
                if (meta.ways != 0) {
                    equal_ways.apply(hdr.ipv4, hdr.udp, meta.ways, meta.count_of_ways, meta.factor,
                                     standard_metadata);
                }
                if (meta.local == 1 && hdr.udp.isValid() && !hdr.agg.isValid()
                        && hdr.udp.dst_port == AGGREGATION_PORT) {
                    other_version.count((bit<32>) standard_metadata.ingress_port);
                }
            }
        }

        if (meta.local == 1 && hdr.agg.isValid()) {
            members.apply();
            if (hdr.recirculation.isValid()) {
                meta.epoch = hdr.agg.epoch;     // what the first pass let in, all passes take
            }
            if (meta.member == 0 && hdr.path.isValid()) {
                parents.apply();
            }
            if (meta.has_parent == 1) {
                uplinks.apply();
                if (meta.from_parent == 1 && meta.parent != standard_metadata.ingress_port) {
                    meta.from_parent = 0;       // a parent of other slots
                }
            }
            meta.sender = hdr.agg.worker;
            meta.cell = (bit<32>) (meta.slot_base + hdr.agg.slot);
            meta.event = EVENT_UNKNOWN_TYPE;
            if (meta.member == 0) {
                if (meta.from_parent == 0) {
                    unknown_member.count(0);
                } else if (hdr.agg.pass != 0) {
                    meta.event = EVENT_SPOOFED_PASS;
                } else if (hdr.agg.slot >= meta.slots) {
                    meta.event = EVENT_BAD_SLOT;
                } else if (hdr.agg.sum_bits != SUM_BITS || hdr.agg.code_bits != CODE_BITS
                        || (hdr.agg.flags & ~(FLAG_UNCOUNTED | MAY_REPEAT)) != FLAG_PATH
                        || (bit<32>) hdr.ipv4.total_length + 14 != standard_metadata.packet_length
                        || hdr.udp.length + IPV4_BYTES != hdr.ipv4.total_length
                        || hdr.ipv4.total_length != IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES
                            + PATH_BYTES + (hdr.agg.type == TYPE_SUMS ? SUMS_SENT : 16w0)) {
                    meta.event = EVENT_BAD_FORMAT;
                } else if (hdr.agg.epoch != meta.epoch && hdr.agg.type != TYPE_EPOCH) {
                    meta.event = EVENT_OTHER_EPOCH;
                } else if (hdr.agg.type == TYPE_SUMS || hdr.agg.type == TYPE_NORM_RESULT
                        || hdr.agg.type == TYPE_STRAGGLER || hdr.agg.type == TYPE_EPOCH) {
                    meta.event = EVENT_PASSED_DOWN;
                    meta.verdict = meta.path == 0 ? MULTICAST : ANSWER;
                    meta.header_only = hdr.agg.type == TYPE_SUMS ? 1w0 : 1w1;
#ifdef NONZERO_BLOCKS
                    meta.repeats = hdr.agg.flags[6:6];
#endif
                    meta.sender = meta.path[7:0] - 1;
                    meta.path = meta.path >> 8;
                    // A result says at a worker who of its rack is in.
                    if (hdr.agg.type == TYPE_SUMS) {
                        meta.cell = meta.cell * PASSES + PASSES - 1;
                        slot_round.read(meta.round, meta.cell);
                        slot_bitmap.read(meta.bitmap, meta.cell);
                        slot_state.read(state, meta.cell);
                        meta.owner = state[39:32];
                        cell_epoch = state[31:24];
                        meta.closed = state[0:0];
                    } else if (hdr.agg.type == TYPE_NORM_RESULT) {
                        norm_round.read(meta.round, meta.cell);
                        norm_bitmap.read(meta.bitmap, meta.cell);
                        norm_closed.read(meta.closed, meta.cell);
                        norm_epoch.read(cell_epoch, meta.cell);
                    }
                    if (cell_epoch != meta.epoch || meta.round != hdr.agg.round || meta.closed == 0) {
                        meta.bitmap = 0;
                        meta.owner = 0;
                    }
                    if (meta.adds == 0) {
                        meta.path = meta.bitmap;
                    }
                }
                if (meta.from_parent == 1) {
                    events.count((bit<32>) (hdr.agg.job ++ meta.event));
                }
            } else if (!hdr.recirculation.isValid() && hdr.agg.pass != 0) {
                meta.event = EVENT_SPOOFED_PASS;
            } else if (!hdr.recirculation.isValid() && hdr.agg.slot >= meta.slots) {
                meta.event = EVENT_BAD_SLOT;
            } else if (standard_metadata.parser_error != error.NoError) {
                meta.event = EVENT_BAD_FORMAT;
            } else if (!hdr.recirculation.isValid()
                    && (hdr.agg.sum_bits != SUM_BITS || hdr.agg.code_bits != CODE_BITS
                        || hdr.agg.flags[3:3] != meta.adds
                        || ((hdr.agg.flags & ~FLAG_PATH) != 0
#ifdef NONZERO_BLOCKS
                            && ((hdr.agg.type != TYPE_CODES && hdr.agg.type != TYPE_PARTIAL_SUMS)
                                || (hdr.agg.flags & ~FLAG_PATH) != FLAG_REPEATS)
#endif
                            && ((hdr.agg.type != TYPE_STATUS && hdr.agg.type != TYPE_QUESTION)
                                || (hdr.agg.flags & ~FLAG_PATH) != FLAG_NORM))
                        || (bit<32>) hdr.ipv4.total_length + 14 != standard_metadata.packet_length
                        || hdr.udp.length + IPV4_BYTES != hdr.ipv4.total_length
                        || hdr.ipv4.total_length != IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES
                            + (meta.adds == 0
                                ? (hdr.agg.type == TYPE_CODES ? CODES_SENT : 16w0)
                                : (hdr.agg.type == TYPE_PARTIAL_SUMS
                                    ? 16w0 + SUMS_BYTES : 16w0)))) {
                meta.event = EVENT_BAD_FORMAT;
            } else if (hdr.agg.epoch != meta.epoch) {
                if (hdr.agg.type == TYPE_CODES || hdr.agg.type == TYPE_NORM
                        || hdr.agg.type == TYPE_STATUS || hdr.agg.type == TYPE_PARTIAL_SUMS
                        || hdr.agg.type == TYPE_QUESTION) {
                    meta.event = EVENT_OTHER_EPOCH;
                    answer(ANSWER, TYPE_EPOCH, 1);
                }
            } else if (hdr.agg.type == TYPE_NORM || (hdr.agg.flags & FLAG_NORM) != 0) {
                if (hdr.agg.type == TYPE_NORM
                        && (hdr.agg.norm[31:31] == 1 || hdr.agg.norm[30:23] == 255)) {
                    meta.event = EVENT_BAD_NORM;
                } else {
                    norm_round.read(meta.round, meta.cell);
                    norm_bitmap.read(meta.bitmap, meta.cell);
                    norm_count.read(meta.count, meta.cell);
                    norm_closed.read(meta.closed, meta.cell);
                    norm_max.read(meta.norm, meta.cell);
                    norm_epoch.read(cell_epoch, meta.cell);
                    compare_round();
                    if (cell_epoch != meta.epoch) {
                        empty_cell();
                        ahead = 1;
                    }
                    meta.summed = 7w0 ++ meta.count;
                    if (hdr.agg.type == TYPE_STATUS) {
                        meta.event = EVENT_STATUS;
                        answer_status(FLAG_ANSWER | FLAG_NORM);
                    } else if (ahead[31:31] == 1) {
                        meta.event = EVENT_STRAGGLER;
                        answer(ANSWER, TYPE_STRAGGLER, 1);
                    } else if (ahead == 0 && meta.closed == 1) {
                        meta.event = EVENT_LATE;
                        if (meta.has_parent == 1) {
                            push();
                            up(TYPE_NORM, 1);
                        } else {
                            answer(ANSWER, TYPE_NORM_RESULT, 1);
                        }
                    } else if (hdr.agg.type == TYPE_QUESTION
                            || (ahead == 0 && (meta.bitmap & meta.bit_of_worker) != 0)) {
                        meta.event = EVENT_DUPLICATE;
                        if (meta.has_parent == 1 && meta.asks == 1) {
                            push();
                            ask_parent(FLAG_NORM);
                        }
                    } else {
                        // A slot has a norm once in a partition, so that rounds are left out.
                        meta.event = EVENT_ACCEPTED;
                        if (ahead != 0) {
                            empty_cell();
                            meta.round = hdr.agg.round;
                        }
                        meta.bitmap = meta.bitmap | meta.bit_of_worker;
                        meta.count = meta.count + 1;
                        meta.summed = 7w0 ++ meta.count;
                        if (hdr.agg.norm > meta.norm) {
                            meta.norm = hdr.agg.norm;
                        }
                        meta.closed = 0;
                        if (meta.count >= meta.quorum) {
                            meta.closed = 1;
                        }
                        norm_epoch.write(meta.cell, meta.epoch);
                        norm_round.write(meta.cell, meta.round);
                        norm_bitmap.write(meta.cell, meta.bitmap);
                        norm_count.write(meta.cell, meta.count);
                        norm_closed.write(meta.cell, meta.closed);
                        norm_max.write(meta.cell, meta.norm);
                        if (meta.closed == 1) {
                            events.count((bit<32>) (hdr.agg.job ++ EVENT_NORM));
                            meta.path = 0;
                            if (meta.has_parent == 1) {
                                up(TYPE_NORM, 1);
                            } else {
                                answer(MULTICAST, TYPE_NORM_RESULT, 1);
                            }
                        }
                    }
                }
            } else if (meta.adds == 0
                    ? hdr.agg.type == TYPE_CODES || hdr.agg.type == TYPE_STATUS
                    : hdr.agg.type == TYPE_PARTIAL_SUMS || hdr.agg.type == TYPE_QUESTION) {
                if (hdr.agg.type == TYPE_STATUS || hdr.agg.type == TYPE_QUESTION) {
                    hdr.agg.pass = PASSES - 1;      // the last pass's state is the slot's
                }
                meta.cell = meta.cell * PASSES + (bit<32>) hdr.agg.pass;
                slot_round.read(meta.round, meta.cell);
                slot_bitmap.read(meta.bitmap, meta.cell);
                slot_state.read(state, meta.cell);
                slot_norm.read(meta.norm, meta.cell);
                meta.owner = state[39:32];
                cell_epoch = state[31:24];
                meta.count = state[23:16];
                meta.summed = state[15:1];
                meta.closed = state[0:0];
                compare_round();
                if (cell_epoch != meta.epoch) {
                    empty_cell();
                    ahead = 1;
                }

                if (hdr.agg.type == TYPE_STATUS) {
                    meta.event = EVENT_STATUS;
                    answer_status(FLAG_ANSWER);
                } else if (ahead[31:31] == 1) {
                    meta.event = EVENT_STRAGGLER;
                    answer(ANSWER, TYPE_STRAGGLER, 1);
                } else if (hdr.agg.type == TYPE_QUESTION) {
                    meta.event = EVENT_DUPLICATE;
                    if (ahead == 0 && meta.closed == 1) {
                        // From here on it is a partial whose sums are collected.
                        meta.verdict = RECIRCULATE;
                        meta.complete = 1;
                        meta.collecting = 1;
                        hdr.agg.type = TYPE_PARTIAL_SUMS;
                        hdr.agg.pass = 0;
                        hdr.agg.norm = meta.norm;
                    } else if (meta.has_parent == 1) {
                        push();
                        ask_parent(0);
                    }
                } else if (ahead > 1 && meta.next_only == 1) {
                    meta.event = EVENT_ROUND_AHEAD;
                } else if (ahead == 0 && hdr.agg.norm != meta.norm) {
                    meta.event = EVENT_NORM_DIFFERS;
                } else {
                    // 1. The state of the cell.
                    meta.update = UPDATE_NONE;
                    if (ahead != 0) {
                        meta.update = UPDATE_START;
                        empty_cell();
                        meta.round = hdr.agg.round;
                        meta.norm = hdr.agg.norm;
                        if (meta.adds == 0) {
                            meta.owner = hdr.agg.count[7:0];
                        }
                    } else if (meta.closed == 0) {
                        if ((meta.bitmap & meta.bit_of_worker) == 0) {
                            meta.update = UPDATE_ADD;
                        } else {
                            meta.duplicate = 1;
                        }
                    }
                    // Collected codes are overwritten. A sender that an earlier pass left out stays out:
                    // a packet that was counted there may have been lost before it came here.
                    if (meta.collecting == 1 || meta.counted == 0) {
                        meta.update = UPDATE_NONE;
                    }
                    if (meta.update != UPDATE_NONE) {
                        meta.bitmap = meta.bitmap | meta.bit_of_worker;
                        meta.count = meta.count + 1;
                        meta.summed = meta.summed + (meta.adds == 1 ? hdr.agg.count[14:0] : 15w1);
                        if (meta.count >= meta.quorum) {
                            meta.closed = 1;
                            meta.closing = 1;
                        }
                        slot_state.write(meta.cell,
                                         meta.owner ++ meta.epoch ++ meta.count ++ meta.summed
                                             ++ meta.closed);
                        slot_bitmap.write(meta.cell, meta.bitmap);
                        if (meta.update == UPDATE_START) {
                            slot_round.write(meta.cell, meta.round);
                            slot_norm.write(meta.cell, meta.norm);
                        }
                    }
                    meta.complete = meta.complete & meta.closed;
                    meta.counted = (bit<1>) ((meta.bitmap & meta.bit_of_worker) != 0);
#ifdef ECN_THRESHOLD
                    if (hdr.agg.pass == PASSES - 1) {
                        ecn_t earlier = 0;
                        if (meta.update != UPDATE_START) {
                            slot_ecn.read(earlier, (bit<32>) (meta.slot_base + hdr.agg.slot));
                        }
                        meta.ecn = meta.ecn | earlier;
                        if (meta.update != UPDATE_NONE) {
                            slot_ecn.write((bit<32>) (meta.slot_base + hdr.agg.slot), meta.ecn);
                        }
                    }
#endif

#ifdef NONZERO_BLOCKS
                    if (hdr.agg.pass == PASSES - 1) {
                        bit<1> earlier = 1;
                        if (meta.update != UPDATE_START) {
                            slot_repeats.read(earlier, (bit<32>) (meta.slot_base + hdr.agg.slot));
                        }
                        meta.repeats = earlier;
                        if (meta.update != UPDATE_NONE) {
                            meta.repeats = earlier & hdr.agg.flags[6:6];
                            slot_repeats.write((bit<32>) (meta.slot_base + hdr.agg.slot),
                                               meta.repeats);
                        }
                    }
                    if (hdr.agg.type == TYPE_CODES && (hdr.agg.flags & FLAG_REPEATS) != 0) {
                        hdr.codes.setValid();
#define REPEAT(n) hdr.codes.block##n = (indices_t) (hdr.agg.bitmap >> (64 - 4 * CODE_BITS - n * 4 * CODE_BITS % 64));
                        EACH_BLOCK(REPEAT)
                    }
#endif

                    // 2. The 128 sums.
                    hdr.sums.setValid();
#define BLOCK_APPLY(n) block##n.apply(hdr.agg.job, hdr.codes.block##n, meta.cell, meta.update, meta.adds, hdr.sums.block##n);
                    EACH_BLOCK(BLOCK_APPLY)
                    hdr.codes.setInvalid();

                    // 3. The next step. The last pass closes after all others, so once it is closed
                    // the result is there; but passes read before they closed are read again.
                    if (hdr.agg.pass != PASSES - 1) {
                        meta.verdict = RECIRCULATE;
                        hdr.agg.pass = hdr.agg.pass + 1;
                    } else {
                        if (meta.update != UPDATE_NONE || meta.closing == 1) {
                            meta.event = EVENT_ACCEPTED;
                        } else if (meta.duplicate == 1) {
                            meta.event = EVENT_DUPLICATE;
                        } else {
                            meta.event = EVENT_LATE;
                        }
                        if (meta.closed == 1 && meta.complete == 1) {
                            if (meta.closing == 1) {
                                events.count((bit<32>) (hdr.agg.job ++ EVENT_SUMS));
                                meta.path = 0;
                            }
                            if (meta.has_parent == 1) {
                                if (meta.closing == 0) {
                                    push();
                                }
                                up(TYPE_PARTIAL_SUMS, 0);
                            } else if (meta.closing == 1) {
                                answer(MULTICAST, TYPE_SUMS, 0);
                            } else {
                                answer(ANSWER, TYPE_SUMS, 0);
                            }
                        } else if (meta.closed == 1 && meta.collecting == 0) {
                            meta.verdict = RECIRCULATE;
                            meta.complete = 1;
                            meta.collecting = 1;
                            hdr.agg.pass = 0;
                            hdr.done.pop_front(PASSES - 1);
                            hdr.sums.setInvalid();
                        } else if (meta.update == UPDATE_NONE && meta.has_parent == 1
                                && meta.asks == 1) {
                            push();
                            ask_parent(0);
                        }
                    }
                }
            }
            if (meta.member == 1 && meta.verdict != RECIRCULATE) {
                events.count((bit<32>) (hdr.agg.job ++ meta.event));
            }
        }

        if (meta.verdict == RECIRCULATE) {
            hdr.recirculation.setValid();
            hdr.recirculation.ingress_port = meta.port;
            hdr.recirculation.complete = meta.complete;
            hdr.recirculation.collecting = meta.collecting;
            hdr.recirculation.closing = meta.collecting & meta.closing;
            hdr.recirculation.counted = meta.counted;
            hdr.recirculation.unused = 0;
            standard_metadata.egress_spec = RECIRCULATION_PORT;
#ifdef HAS_CABLE
            if (hdr.agg.pass[0:0] == 1) {
                standard_metadata.egress_spec = CABLE_OUT;
            }
#endif
        } else {
            hdr.recirculation.setInvalid();
            if (meta.verdict == MULTICAST) {
                standard_metadata.mcast_grp = meta.group;
            } else if (meta.verdict == ANSWER) {
                standard_metadata.egress_spec = meta.port;
            } else if (meta.verdict == UP) {
                standard_metadata.egress_spec = meta.parent;
                hdr.agg.worker = meta.number;
                hdr.agg.bitmap = meta.path;
                hdr.agg.flags = hdr.agg.flags | FLAG_PATH;
            }
#ifdef NONZERO_BLOCKS
            if (meta.repeats == 1
                    && (hdr.agg.type == TYPE_SUMS || hdr.agg.type == TYPE_PARTIAL_SUMS)) {
                hdr.agg.flags = hdr.agg.flags | FLAG_REPEATS;
            }
#endif
            if ((meta.adds == 1 || meta.from_parent == 1)
                    && (meta.verdict == ANSWER || meta.verdict == MULTICAST)) {
                hdr.path.setValid();
                hdr.path.hops = meta.path;
                hdr.agg.flags = hdr.agg.flags | FLAG_PATH;
            }
        }
    }
}

control ThcEgress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
#include "include/v1model_deliver.p4"

    apply {
        if (meta.verdict == RECIRCULATE) {
#ifdef HAS_CABLE
            if (standard_metadata.egress_port != CABLE_OUT)
#endif
            recirculate_preserving_field_list(0);
        } else {
            if (meta.verdict >= ANSWER) {
                // The replicas of an answer differ only in their addresses, and in queues' marks.
                hdr.ipv4.tos = 0;
#ifdef ECN_THRESHOLD
                hdr.ipv4.tos[1:0] = meta.ecn;
#endif
                hdr.ipv4.identification = 0;
                hdr.ipv4.flags = 2;
                hdr.ipv4.ttl = 64;
                hdr.udp.src_port = AGGREGATION_PORT;
                hdr.udp.checksum = 0;
                meta.receiver = meta.sender;
                if (standard_metadata.instance_type == INSTANCE_REPLICATION) {
                    meta.receiver = (bit<8>) (standard_metadata.egress_rid - 1);
                }
                if (hdr.agg.type == TYPE_SUMS && meta.owner != 0
                        && meta.owner != meta.receiver + 1) {
                    meta.header_only = 1;
                    hdr.agg.flags = (hdr.agg.flags & ~FLAG_REPEATS) | FLAG_BARE;
                }
                hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES;
                if (meta.header_only == 0) {
                    hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + SUMS_BYTES;
#ifdef NONZERO_BLOCKS
                    if (meta.repeats == 1 && hdr.agg.type == TYPE_SUMS) {
                        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + REPEATED_BYTES;
                        truncate(14 + 20 + 8 + 30 + REPEATED_BYTES
                                 + (hdr.path.isValid() ? 32w8 : 32w0));
                    }
#endif
                } else {
                    truncate(14 + 20 + 8 + 30 + (hdr.path.isValid() ? 32w8 : 32w0));
                }
                if (hdr.path.isValid()) {
                    hdr.udp.length = hdr.udp.length + PATH_BYTES;
                }
                hdr.ipv4.total_length = hdr.udp.length + IPV4_BYTES;
                if (meta.verdict == UP) {
                    meta.receiver = meta.above;
                } else if (meta.adds == 1
                        && (hdr.agg.type == TYPE_SUMS || hdr.agg.type == TYPE_NORM_RESULT)
                        && (bit<1>) (meta.bitmap >> meta.receiver) == 0) {
                    hdr.agg.flags = hdr.agg.flags | FLAG_UNCOUNTED;
                }
                receivers.apply();
            }
#ifdef ECN_THRESHOLD
            mark_ecn(hdr.ipv4, standard_metadata.enq_qdepth);
#endif
            port_out.count((bit<32>) standard_metadata.egress_port);
        }
    }
}

control ThcCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.verdict >= ANSWER && !hdr.path.isValid(),
            { HEADER_FIELDS }, hdr.agg.checksum, HashAlgorithm.csum16);
        update_checksum(meta.verdict >= ANSWER && hdr.path.isValid(),
            { HEADER_FIELDS, hdr.path.hops }, hdr.agg.checksum, HashAlgorithm.csum16);
    }
}

control ThcDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.recirculation);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.agg);
        packet.emit(hdr.path);
        packet.emit(hdr.done);
        packet.emit(hdr.sums);
        packet.emit(hdr.codes);
    }
}

V1Switch(ThcParser(), ThcVerify(), ThcIngress(), ThcEgress(), ThcCompute(), ThcDeparser()) main;
