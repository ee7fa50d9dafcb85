// In-network aggregation in memory that jobs share (after ATP, NSDI '21), of THC's codes, for
// Tofino 2: the rules and the wire format of shared.p4, in the chip's way.
//
// A pass takes its codes off the packet and adds them to its cell. What carries a slot's content away
// collects the sums after that, the last pass's first, each in front of the others:
//
//   codes of passes 0 ... 7  -->  pass 0, 1, ... 7  -->  collecting 7, 6, ... 0  -->  a partial
//
// A register is accessed once in a pass, so that what decides stands in registers one after the other:
//
//   tag  -->  norm, packets of others  -->  workers  -->  sums
//
// The tag says whether a cell is free, and is written before the workers are known. So a slot gets
// free when its sums are collected, cell by cell, the first one at last. Only what finds the first
// cell free begins a slot, and only what finds its own tag in all cells, with the same workers, leaves:
//
//   all workers are in, in the last pass --> the packet collects
//   a direct packet's worker is in       --> its codes are skipped, and it collects
//   the slot has another chunk           --> the packet goes on to its server. After `patience` such
//                                            packets a copy of one, without its codes, collects what
//                                            is in the slot, for the server of the job whose it is;
//                                            the packet goes round until the slot is free
//
// All ports of the jobs may be in any pipe: a packet goes to the pipe with the registers first.

#include <core.p4>
#include <t2na.p4>

#define SHARES_SLOTS
#include "include/tna_aggregation.p4"

const verdict_t EVICT = 6;          // to another pass, and so does a copy

const operation_t DIRECT = 3;
const operation_t TO_SERVER = 4;
const operation_t TO_WORKERS = 5;

const bit<8> SERVER = 255;          // its number among the receivers

// The group whose one member is the recirculation port.
const MulticastGroupId_t EVICTIONS = 0xFFFF;

// Passes that a packet waits for its slot: a copy collects in eight, and is a pass behind.
#define WAITS 12

// The packet's tag beside the cell's, one bit for each combination of: free (lowest bit), equal
// round, equal epoch, job and slot.
typedef bit<16> relation_t;
const relation_t FREE = 0x000A;
const relation_t OURS = 0x0040;

// What the relation lets the packet do with the cell.
typedef bit<3> access_t;
const access_t KEEP_OUT = 0;
const access_t START = 1;
const access_t JOIN = 2;        // if its norm is the slot's and its worker new
const access_t LOOK = 3;
const access_t WAIT = 4;        // the slot has another chunk

// Likewise: the packet's norm is the slot's, and fewer packets of others than `patience` came.
typedef bit<2> answer_t;
const answer_t NO = 1;
const answer_t YES = 2;

struct tag_t { bit<32> round; bit<32> chunk; }  // chunk: epoch 8, job 8, slot 16; 0: free

// Precedes a packet between two passes, and from ingress to egress.
header recirculation_t {
    @padding bit<7> unused;
    bit<9>  ingress_port;
    bit<8>  job;            // of the packet's own chunk
    bit<8>  receiver;
    bit<8>  skip;           // passes whose codes are left in what collects
    bit<8>  waits;          // for its slot, so many times more
    bit<1>  elsewhere;      // on its way to the pipe with the registers: not a pass yet
    bit<1>  collecting;
    bit<1>  emptied;        // collects from the next pass on
    bit<1>  addressed;
    bit<1>  begins;         // the packet has begun its slot
    bit<1>  broken;         // some cell was not as the last one was
    @padding bit<2> unused2;
    @padding bit<4> unused3;
    event_t event;          // of what collects
    bit<32> round;          // of the chunk that it collects
    bit<32> chunk;
}

struct headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
    aggregation_t   agg;
    sums_t          sums;
    codes_t         codes;
}

struct metadata_t {
    verdict_t verdict;
    bit<1>  again;          // after an earlier pass
    bit<1>  local;          // addressed to the switch itself
    bit<1>  wrong_checksum;
    bit<1>  damaged;        // the aggregation header's checksum is wrong
    PortId_t port;          // ingress port, before any recirculation

    // of the sender, from the table of members
    bit<1>  member;
    bit<16> slots;          // less the packet's slot: 0 if it has none
    bit<8>  patience;
    bit<8>  off_epoch;      // the bits in which the packet's epoch is not the job's
    bit<32> bit_low;
    bit<32> bit_high;
    bit<32> everyone_low;
    bit<32> everyone_high;

    // or of the server, from the table of answers
    bit<1>  from_server;
    bit<16> group;
    PortId_t to_port;

    operation_t operation;
    event_t event;
    bit<1>  looks_up;

    // of the cell
    bit<SLOT_BITS> slot;
    bit<32> chunk;
    cell_t  cell;
    relation_t relation;
    access_t access;
    bit<32> norm;
    answer_t equal_norm;
    answer_t patient;
    bit<32> expected_low;   // all but the packet's worker, or those in the cells before
    bit<32> expected_high;
    bit<32> found_low;
    bit<32> found_high;
    bit<32> own_low;
    bit<32> own_high;
    bit<32> other_low;      // the workers in which the cell is not as expected
    bit<32> other_high;
    bit<1>  duplicate;
    bit<1>  whole;
    update_t update;
    bit<1>  finished;       // no pass follows: its event counts
}

#include "include/tna_parser.p4"

control ThcIngress(inout headers_t hdr, inout metadata_t meta,
                   in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Counter<bit<32>, bit<12>>(4096, CounterType_t.PACKETS) shared_events;

#include "include/tna_arrivals.p4"

    // -- workers and servers -------------------------------------------------------------------

    action admit_shared(bit<64> everyone, bit<64> worker_bit, bit<16> slots, bit<8> epoch,
                        bit<8> patience, bit<16> group) {
        meta.member = 1;
        meta.everyone_high = everyone[63:32];
        meta.everyone_low = everyone[31:0];
        meta.bit_high = worker_bit[63:32];
        meta.bit_low = worker_bit[31:0];
        meta.slots = slots;
        meta.off_epoch = hdr.agg.epoch ^ epoch;
        meta.patience = patience;
    }

    table members {
        key = {
            hdr.agg.job : exact @name("job");
            hdr.agg.worker : exact @name("worker");
            meta.port : exact @name("port");
        }
        actions = { admit_shared; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    action pass_answer(bit<16> group, bit<9> port) {
        meta.from_server = 1;
        meta.group = group;
        meta.to_port = port;
    }

    table answers {
        key = {
            hdr.agg.job : exact @name("job");
            meta.port : exact @name("port");
            hdr.agg.worker : exact @name("hop");
        }
        actions = { pass_answer; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    action to_server(bit<9> port) { for_tm.ucast_egress_port = port; }

    // The job of a partial may have ended.
    action drop_partial() { for_deparser.drop_ctl = 1; }

    table servers {
        key = { hdr.agg.job : exact @name("job"); }
        actions = { to_server; @defaultonly drop_partial; }
        const default_action = drop_partial();
        size = 256;
    }

    // From here on, the chunk is the one that is collected.
    action take_up() {
        hdr.agg.epoch = hdr.recirculation.chunk[31:24];
        hdr.agg.job = hdr.recirculation.chunk[23:16];
        hdr.agg.slot = hdr.recirculation.chunk[15:0];
        hdr.agg.round = hdr.recirculation.round;
        hdr.agg.pass = LAST_PASS;
    }

    Hash<bit<SLOT_BITS>>(HashAlgorithm_t.CRC32) slot_of;
    Hash<bit<32>>(HashAlgorithm_t.IDENTITY) chunk_of;   // puts fields together in one step

    action find_slot() {
        meta.slot = slot_of.get({ hdr.agg.job, hdr.agg.round, hdr.agg.slot });
        meta.slots = meta.slots |-| hdr.agg.slot;
    }

    action find_chunk() { meta.chunk = chunk_of.get({ hdr.agg.epoch, hdr.agg.job, hdr.agg.slot }); }

    action expect_all_others() {
        meta.expected_low = meta.everyone_low ^ meta.bit_low;
        meta.expected_high = meta.everyone_high ^ meta.bit_high;
    }

    action expect_the_same() {
        meta.expected_low = hdr.agg.bitmap[31:0];
        meta.expected_high = hdr.agg.bitmap[63:32];
    }

    @hidden table expected {
        key = { hdr.recirculation.collecting : exact; }
        actions = { expect_all_others; expect_the_same; }
        const default_action = expect_all_others();
        const entries = { 1 : expect_the_same(); }
        size = 2;
    }

    // -- the operation, or why it is refused ----------------------------------------------------

    action refuse(event_t event) {
        meta.operation = REFUSED;
        meta.event = event;
    }

    action of_pass(operation_t operation) {
        meta.operation = operation;
        meta.cell = meta.slot ++ hdr.agg.pass[PASS_BITS - 1:0];
    }

    action pass_on(operation_t operation, event_t event) {
        meta.operation = operation;
        meta.event = event;
    }

#define WITH_CODES (HEADER_ONLY + CODES_BYTES)
#define WITH_SUMS (HEADER_ONLY + SUMS_BYTES)
#define FROM_WORKER(type, epoch, flags, length) \
    (0, _, _, 0, 1, _, 0, _, epoch, type, flags, SUM_BITS, CODE_BITS, length, length - IPV4_BYTES)
#define FROM_SERVER(type, flags, length) \
    (0, _, _, _, 0, 1, 0, _, _, type, flags, SUM_BITS, CODE_BITS, length, length - IPV4_BYTES)

    table operations {
        key = {
            meta.again : ternary;
            hdr.recirculation.emptied : ternary;
            hdr.recirculation.collecting : ternary;
            from_parser.parser_err : ternary;
            meta.member : ternary;
            meta.from_server : ternary;
            hdr.agg.pass : ternary;
            meta.slots : ternary;
            meta.off_epoch : ternary;
            hdr.agg.type : ternary;
            hdr.agg.flags : ternary;
            hdr.agg.sum_bits : ternary;
            hdr.agg.code_bits : ternary;
            hdr.ipv4.total_length : ternary;
            hdr.udp.length : ternary;
        }
        actions = { refuse; of_pass; pass_on; }
        const default_action = refuse(EVENT_SPOOFED_PASS);
        const entries = {
            (1, 1, _, _, _, _, _, _, _, _, _, _, _, _, _) : of_pass(COLLECT);
            (1, _, 1, _, _, _, _, _, _, _, _, _, _, _, _) : of_pass(COLLECT);
            (1, _, _, 0, 1, _, _, _, 0, _, _, _, _, _, _) : of_pass(CODES);
            (1, _, _, 0, _, _, _, _, _, _, _, _, _, _, _) : refuse(EVENT_OTHER_EPOCH);
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            (0, _, _, _, 1, _, 0, 0, _, _, _, _, _, _, _) : refuse(EVENT_BAD_SLOT);
            FROM_WORKER(TYPE_CODES, 0, 0, WITH_CODES) : of_pass(CODES);
            FROM_WORKER(TYPE_CODES, 0, FLAG_DIRECT, WITH_CODES) : of_pass(DIRECT);
            FROM_WORKER(TYPE_CODES, _, 0, WITH_CODES) : pass_on(TO_SERVER, EVENT_OTHER_EPOCH);
            FROM_WORKER(TYPE_CODES, _, FLAG_DIRECT, WITH_CODES) : pass_on(TO_SERVER, EVENT_OTHER_EPOCH);
            (0, _, _, _, 1, _, 0, _, _, TYPE_CODES, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            FROM_WORKER(TYPE_NORM, _, 0, HEADER_ONLY) : pass_on(TO_SERVER, EVENT_NORM);
            FROM_WORKER(TYPE_STATUS, _, 0, HEADER_ONLY) : pass_on(TO_SERVER, EVENT_STATUS);
            FROM_WORKER(TYPE_STATUS, _, FLAG_NORM, HEADER_ONLY) : pass_on(TO_SERVER, EVENT_STATUS);
            FROM_WORKER(_, _, 0, HEADER_ONLY) : refuse(EVENT_UNKNOWN_TYPE);
            FROM_SERVER(TYPE_SUMS, 0, WITH_SUMS) : pass_on(TO_WORKERS, EVENT_PASSED_DOWN);
            (0, _, _, _, 0, _, 0, _, _, TYPE_SUMS, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            FROM_SERVER(TYPE_NORM_RESULT, 0, HEADER_ONLY) : pass_on(TO_WORKERS, EVENT_PASSED_DOWN);
            FROM_SERVER(TYPE_STRAGGLER, 0, HEADER_ONLY) : pass_on(TO_WORKERS, EVENT_PASSED_DOWN);
            FROM_SERVER(TYPE_STATUS, _, HEADER_ONLY) : pass_on(TO_WORKERS, EVENT_PASSED_DOWN);
            FROM_SERVER(TYPE_EPOCH, 0, HEADER_ONLY) : pass_on(TO_WORKERS, EVENT_PASSED_DOWN);
            FROM_SERVER(_, 0, HEADER_ONLY) : refuse(EVENT_UNKNOWN_TYPE);
            (0, _, _, _, _, _, 0, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
        }
        size = 32;
    }

    // -- whose the cell is ------------------------------------------------------------------------

    Register<tag_t, cell_t>(CELLS) cell_tag;
    Register<bit<32>, bit<SLOT_BITS>>(SLOTS) slot_norm;
    Register<bit<8>, bit<SLOT_BITS>>(SLOTS) slot_others;    // packets since the last of its own
    Register<workers_t, cell_t>(CELLS) cell_bitmap;

#define SEE_TAG \
            relation = this.predicate<relation_t>(tag.chunk == 0, tag.round == hdr.agg.round, \
                                                  tag.chunk == meta.chunk); \
            round = tag.round; \
            chunk = tag.chunk;

    RegisterAction3<tag_t, cell_t, bit<32>, bit<32>, relation_t>(cell_tag) enter_free = {
        void apply(inout tag_t tag, out bit<32> round, out bit<32> chunk, out relation_t relation) {
            SEE_TAG
            if (tag.chunk == 0) {
                tag.round = hdr.agg.round;
                tag.chunk = meta.chunk;
            }
        }
    };
    RegisterAction3<tag_t, cell_t, bit<32>, bit<32>, relation_t>(cell_tag) enter_any = {
        void apply(inout tag_t tag, out bit<32> round, out bit<32> chunk, out relation_t relation) {
            SEE_TAG
            tag.round = hdr.agg.round;
            tag.chunk = meta.chunk;
        }
    };
    RegisterAction3<tag_t, cell_t, bit<32>, bit<32>, relation_t>(cell_tag) see_tag = {
        void apply(inout tag_t tag, out bit<32> round, out bit<32> chunk, out relation_t relation) {
            SEE_TAG
        }
    };
    RegisterAction3<tag_t, cell_t, bit<32>, bit<32>, relation_t>(cell_tag) leave_own = {
        void apply(inout tag_t tag, out bit<32> round, out bit<32> chunk, out relation_t relation) {
            SEE_TAG
            if (tag.round == hdr.agg.round && tag.chunk == meta.chunk) { tag.chunk = 0; }
        }
    };

#define TAG_ACTION(name, access) \
    action name() { \
        hdr.recirculation.round = access.execute(meta.cell, hdr.recirculation.chunk, meta.relation); \
    }
    TAG_ACTION(enter, enter_free)
    TAG_ACTION(enter_always, enter_any)
    TAG_ACTION(look_at_tag, see_tag)
    TAG_ACTION(leave, leave_own)

    @hidden table find_tag {
        key = {
            meta.operation : exact;
            meta.again : ternary;
            hdr.recirculation.begins : ternary;
        }
        actions = { enter; enter_always; look_at_tag; leave; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, 0, _) : enter();
            (CODES, 1, 1) : enter_always();
            (CODES, 1, 0) : look_at_tag();
            (DIRECT, _, _) : look_at_tag();
            (COLLECT, _, _) : leave();
        }
        size = 8;
    }

    action allow(access_t access) { meta.access = access; }

    // Two combinations of a relation are one number under a mask: one bit is set in all.
    @hidden table relations {
        key = {
            meta.operation : exact;
            meta.again : ternary;
            hdr.recirculation.begins : ternary;
            meta.relation : ternary;
        }
        actions = { allow; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, 0, _, IN(FREE)) : allow(START);
            (CODES, 1, 1, _) : allow(START);
            (CODES, _, _, IN(OURS)) : allow(JOIN);
            (CODES, 0, _, _) : allow(WAIT);
            (DIRECT, _, _, IN(OURS)) : allow(LOOK);
            (COLLECT, _, _, IN(OURS)) : allow(LOOK);
        }
        size = 8;
    }

    RegisterAction2<bit<32>, bit<SLOT_BITS>, bit<32>, answer_t>(slot_norm) set_norm = {
        void apply(inout bit<32> norm, out bit<32> found, out answer_t equal) {
            norm = hdr.agg.norm;
            found = norm;
            equal = 0;
        }
    };
    RegisterAction2<bit<32>, bit<SLOT_BITS>, bit<32>, answer_t>(slot_norm) see_norm = {
        void apply(inout bit<32> norm, out bit<32> found, out answer_t equal) {
            found = norm;
            equal = this.predicate<answer_t>(norm == hdr.agg.norm);
        }
    };

    action start_norm() { meta.norm = set_norm.execute(meta.slot, meta.equal_norm); }
    action look_at_norm() { meta.norm = see_norm.execute(meta.slot, meta.equal_norm); }

    @hidden table find_norm {
        key = { meta.operation : exact; meta.again : ternary; meta.access : ternary; }
        actions = { start_norm; look_at_norm; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, 0, START) : start_norm();
            (CODES, 0, JOIN) : look_at_norm();
            (COLLECT, _, _) : look_at_norm();
        }
        size = 4;
    }

    RegisterAction<bit<8>, bit<SLOT_BITS>, answer_t>(slot_others) forget_others = {
        void apply(inout bit<8> others, out answer_t patient) {
            others = 0;
            patient = 0;
        }
    };
    RegisterAction<bit<8>, bit<SLOT_BITS>, answer_t>(slot_others) count_other = {
        void apply(inout bit<8> others, out answer_t patient) {
            patient = this.predicate(others + 1 < meta.patience);
            if (others + 1 < meta.patience) { others = others + 1; } else { others = 0; }
        }
    };

    action own_packet() { meta.patient = forget_others.execute(meta.slot); }
    action packet_of_others() { meta.patient = count_other.execute(meta.slot); }

    @hidden table find_others {
        key = {
            meta.again : exact;
            meta.access : exact;
            meta.equal_norm : ternary;
            hdr.recirculation.waits : ternary;
        }
        actions = { own_packet; packet_of_others; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (0, START, _, _) : own_packet();
            (0, JOIN, YES, _) : own_packet();
            (0, JOIN, _, 0) : packet_of_others();
            (0, WAIT, _, 0) : packet_of_others();
        }
        size = 4;
    }

    // -- who is in it ---------------------------------------------------------------------------

    RegisterAction2<workers_t, cell_t, bit<32>, bit<32>>(cell_bitmap) put_first = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = 0;
            high = 0;
            workers.low = meta.bit_low;
            workers.high = meta.bit_high;
        }
    };
    RegisterAction2<workers_t, cell_t, bit<32>, bit<32>>(cell_bitmap) put_another = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = workers.low;
            high = workers.high;
            workers.low = workers.low | meta.bit_low;
            workers.high = workers.high | meta.bit_high;
        }
    };
    RegisterAction2<workers_t, cell_t, bit<32>, bit<32>>(cell_bitmap) see_workers = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = workers.low;
            high = workers.high;
        }
    };

    action start_bitmap() { meta.found_low = put_first.execute(meta.cell, meta.found_high); }
    action join_bitmap() { meta.found_low = put_another.execute(meta.cell, meta.found_high); }
    action look_at_bitmap() { meta.found_low = see_workers.execute(meta.cell, meta.found_high); }

    @hidden table find_bitmap {
        key = { meta.access : exact; meta.equal_norm : ternary; }
        actions = { start_bitmap; join_bitmap; look_at_bitmap; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (START, _) : start_bitmap();
            (JOIN, 0) : join_bitmap();
            (JOIN, YES) : join_bitmap();
            (LOOK, _) : look_at_bitmap();
        }
        size = 4;
    }

    // In a table, as a condition would compute it and takes 44 bits.
    action compare_bits() {
        meta.own_low = meta.found_low & meta.bit_low;
        meta.own_high = meta.found_high & meta.bit_high;
        meta.other_low = meta.found_low ^ meta.expected_low;
        meta.other_high = meta.found_high ^ meta.expected_high;
    }

    @hidden table bits {
        actions = { compare_bits; }
        const default_action = compare_bits();
        size = 1;
    }

    action update_cell(update_t update) { meta.update = update; }

    @hidden table updates {
        key = {
            meta.operation : exact;
            meta.access : exact;
            meta.equal_norm : ternary;
            meta.duplicate : ternary;
        }
        actions = { update_cell; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, START, _, _) : update_cell(UPDATE_START);
            (CODES, JOIN, 0, 0) : update_cell(UPDATE_ADD);
            (CODES, JOIN, YES, 0) : update_cell(UPDATE_ADD);
            (COLLECT, LOOK, _, _) : update_cell(UPDATE_READ);
        }
        size = 4;
    }

    // -- what becomes of the packet -------------------------------------------------------------

    action next_pass(bit<1> begins) {
        meta.verdict = RECIRCULATE;
        hdr.recirculation.begins = begins;
        hdr.recirculation.emptied = 0;
        hdr.agg.pass = hdr.agg.pass + 1;
    }

    action collect(event_t event, bit<8> skip) {
        meta.verdict = RECIRCULATE;
        hdr.recirculation.emptied = 1;
        hdr.recirculation.event = event;
        hdr.recirculation.skip = skip;
    }

    action collect_first(bit<1> broken) {
        meta.verdict = RECIRCULATE;
        hdr.recirculation.emptied = 0;
        hdr.recirculation.collecting = 1;
        hdr.recirculation.broken = broken;
        hdr.agg.bitmap = meta.found_high ++ meta.found_low;
        hdr.agg.pass = hdr.agg.pass - 1;
    }

    action collect_next() {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = hdr.agg.pass - 1;
    }

    action break_off() {
        meta.verdict = RECIRCULATE;
        hdr.recirculation.broken = 1;
        hdr.agg.pass = hdr.agg.pass - 1;
    }

    action leave_as_partial() {
        meta.verdict = UP;
        meta.event = hdr.recirculation.event;
        meta.finished = 1;
        hdr.agg.type = TYPE_PARTIAL_SUMS;
        hdr.agg.norm = meta.norm;
        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + SUMS_BYTES;
    }

    action go_up(event_t event) {
        meta.verdict = UP;
        meta.event = event;
        meta.finished = 1;
    }

    action go_up_as_it_is() {
        meta.verdict = UP;
        meta.finished = 1;
    }

    // The packet comes back as it came; a copy, which egress says is in the right pipe, collects.
    action evict() {
        meta.verdict = EVICT;
        hdr.recirculation.elsewhere = 1;
        hdr.recirculation.waits = WAITS;
        hdr.recirculation.emptied = 1;
        hdr.recirculation.event = EVENT_EVICTED;
        hdr.recirculation.skip = PASSES;
    }

    action wait_for_slot() {
        meta.verdict = RECIRCULATE;
        hdr.recirculation.elsewhere = 1;
        hdr.recirculation.waits = hdr.recirculation.waits - 1;
    }

    action go_down(verdict_t verdict) {
        meta.verdict = verdict;
        meta.finished = 1;
        hdr.recirculation.receiver = hdr.agg.worker - 1;
        hdr.agg.worker = 0;
    }

    action stop(event_t event) {
        meta.event = event;
        meta.finished = 1;
    }

    action count_refusal() { meta.finished = 1; }

    @hidden table outcomes {
        key = {
            meta.operation : exact;
            meta.again : ternary;
            hdr.agg.pass : ternary;
            meta.access : ternary;
            meta.equal_norm : ternary;
            meta.patient : ternary;
            meta.duplicate : ternary;
            meta.whole : ternary;
            hdr.recirculation.broken : ternary;
            hdr.recirculation.waits : ternary;
            hdr.agg.worker : ternary;
        }
        actions = {
            next_pass; collect; collect_first; collect_next; break_off; leave_as_partial; go_up;
            go_up_as_it_is; evict; wait_for_slot; go_down; stop; count_refusal;
        }
        const default_action = count_refusal();
        const entries = {
            (CODES, 0, _, START, _, _, _, _, _, _, _) : next_pass(1);
            (CODES, 0, _, JOIN, YES, _, 1, _, _, _, _) : stop(EVENT_DUPLICATE);
            (CODES, 0, _, JOIN, YES, _, _, _, _, _, _) : next_pass(0);
            (CODES, 0, _, _, _, NO, _, _, _, _, _) : evict();
            (CODES, 0, _, _, _, _, _, _, _, 0, _) : go_up(EVENT_TAKEN);
            (CODES, 0, _, _, _, _, _, _, _, _, _) : wait_for_slot();
            (CODES, _, _, KEEP_OUT, _, _, _, _, _, _, _) : stop(EVENT_BROKEN);
            (CODES, _, _, JOIN, _, _, 1, _, _, _, _) : stop(EVENT_BROKEN);
            (CODES, _, LAST_PASS, _, _, _, _, 1, _, _, _) : collect(EVENT_SUMS, 0);
            (CODES, _, LAST_PASS, _, _, _, _, _, _, _, _) : stop(EVENT_ACCEPTED);
            (CODES, _, _, START, _, _, _, _, _, _, _) : next_pass(1);
            (CODES, _, _, _, _, _, _, _, _, _, _) : next_pass(0);
            (DIRECT, _, _, LOOK, _, _, 1, _, _, _, _) : collect(EVENT_FREED, PASSES);
            (DIRECT, _, _, _, _, _, _, _, _, _, _) : go_up(EVENT_DIRECT);
            (COLLECT, _, LAST_PASS, LOOK, _, _, _, _, _, _, _) : collect_first(0);
            (COLLECT, _, LAST_PASS, _, _, _, _, _, _, _, _) : collect_first(1);
            (COLLECT, _, 0, LOOK, _, _, _, 1, 0, _, _) : leave_as_partial();
            (COLLECT, _, 0, _, _, _, _, _, _, _, _) : stop(EVENT_BROKEN);
            (COLLECT, _, _, LOOK, _, _, _, 1, _, _, _) : collect_next();
            (COLLECT, _, _, _, _, _, _, _, _, _, _) : break_off();
            (TO_SERVER, _, _, _, _, _, _, _, _, _, _) : go_up_as_it_is();
            (TO_WORKERS, _, _, _, _, _, _, _, _, _, 0) : go_down(MULTICAST);
            (TO_WORKERS, _, _, _, _, _, _, _, _, _, _) : go_down(ANSWER);
        }
        size = 32;
    }

    action first_arrival() {
        hdr.recirculation.setValid();
        hdr.recirculation.ingress_port = intrinsic.ingress_port;
        hdr.recirculation.job = hdr.agg.job;
        hdr.recirculation.receiver = 0;
        hdr.recirculation.skip = 0;
        hdr.recirculation.waits = 0;
        hdr.recirculation.elsewhere = 0;
        hdr.recirculation.collecting = 0;
        hdr.recirculation.emptied = 0;
        hdr.recirculation.addressed = 0;
        hdr.recirculation.begins = 0;
        hdr.recirculation.broken = 0;
        hdr.recirculation.event = 0;
        hdr.recirculation.round = 0;
        hdr.recirculation.chunk = 0;
    }

    apply {
        hdr.sums.setValid();
        if (!hdr.recirculation.isValid()) {
            port_in.count(intrinsic.ingress_port);
            first_arrival();
        }
        if (meta.again == 1) {
            meta.local = 1;
            if (hdr.recirculation.emptied == 1) {
                take_up();
            }
        } else if (meta.damaged == 1) {
            damaged.count(intrinsic.ingress_port);
        } else if (hdr.ipv4.isValid() && meta.wrong_checksum == 0 && hdr.ipv4.ttl != 0) {
            routes.apply();
        }
        if (hdr.agg.isValid()) {
            members.apply();
            answers.apply();
            find_slot();
            find_chunk();
            expected.apply();
        }

        if (meta.local == 1 && meta.again == 0 && !hdr.agg.isValid()) {
            if (hdr.udp.isValid() && hdr.udp.dst_port == AGGREGATION_PORT) {
                other_version.count(intrinsic.ingress_port);
            }
        } else if (meta.local == 1) {
            if (intrinsic.ingress_port[8:7] != AGGREGATING_PIPE) {
                hdr.recirculation.elsewhere = 1;
                meta.verdict = RECIRCULATE;
            } else if (meta.member == 0 && meta.from_server == 0 && meta.again == 0) {
                unknown_member.count(0);
            } else {
                hdr.recirculation.elsewhere = 0;
                operations.apply();
                find_tag.apply();
                relations.apply();
                find_norm.apply();
                find_others.apply();
                find_bitmap.apply();
                bits.apply();
                if (meta.own_low != 0) {
                    meta.duplicate = 1;
                } else if (meta.own_high != 0) {
                    meta.duplicate = 1;
                }
                if (meta.other_low == 0) {
                    if (meta.other_high == 0) {
                        meta.whole = 1;
                    }
                }
                updates.apply();
                outcomes.apply();
                if (meta.finished == 1) {
                    shared_events.count(hdr.recirculation.job ++ meta.event);
                }
                if (meta.update != UPDATE_NONE) {
                    hdr.codes.setInvalid();
                }
            }
        }

#define BLOCK_APPLY(n) block##n.apply(hdr.agg.job, meta.looks_up, hdr.codes.block##n, meta.cell, meta.operation, meta.update, hdr.sums.block##n);
        EACH_BLOCK(BLOCK_APPLY)

        // The sums of a pass go with the packet from when it collects.
        if (meta.operation != COLLECT) {
            hdr.sums.setInvalid();
        }
        if (meta.verdict == RECIRCULATE) {
            for_tm.ucast_egress_port = RECIRCULATION_PORT;
            for_tm.bypass_egress = 1;
        } else if (meta.verdict == EVICT) {
            for_tm.ucast_egress_port = RECIRCULATION_PORT;
            for_tm.mcast_grp_a = EVICTIONS;
        } else {
            hdr.recirculation.job = hdr.agg.job;
            hdr.recirculation.addressed = 1;
            if (meta.verdict == MULTICAST) {
                for_tm.mcast_grp_a = meta.group;
            } else if (meta.verdict == ANSWER) {
                for_tm.ucast_egress_port = meta.to_port;
            } else if (meta.verdict == UP) {
                hdr.recirculation.receiver = SERVER;
                servers.apply();
            } else {
                hdr.recirculation.addressed = 0;
                if (meta.verdict == DROP) {
                    for_deparser.drop_ctl = 1;
                }
            }
        }
    }
}

#include "include/tna_egress.p4"

Pipeline(ThcIngressParser(), ThcIngress(), ThcIngressDeparser(),
         ThcEgressParser(), ThcEgress(), ThcEgressDeparser()) pipe;

Switch(pipe) main;
