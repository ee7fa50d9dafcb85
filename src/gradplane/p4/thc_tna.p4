// In-network aggregation of THC's compressed gradients (THC, NSDI '24, section 6 and appendix C)
// for Tofino 2: the rules and the wire format of thc.p4, in the chip's way.
//
// A pass handles codes for 128 bytes of sums (128 of them for sums of 8 bits, 32 for 32) and removes
// them from the packet, so that the next pass finds its own at the same place. The last pass that finds the slot closed replaces its codes by their sums; the
// packet then collects the sums of the passes before, the last first, each in front of the others:
//
//   codes of passes 0 ... 7  -->  pass 0, 1, ... 7  -->  collecting 6, 5, ... 0  -->  all sums
//
// A register is accessed once in a pass, so what decides stands in registers one after the other:
//
//   epoch  -->  round, norm  -->  seen  -->  count  -->  summed  -->  sums
//
// `seen` has the workers whose packets came by, late ones too; `summed` those that were counted,
// which a result names. A pass is closed when its count is the quorum.
//
// An answer without a payload to a packet whose codes are not all consumed leaves after a pass that
// only skips them. All ports of the job's workers may be in any pipe: a packet goes to the pipe
// with the registers first.

#include <core.p4>
#include <t2na.p4>

#include "include/tna_aggregation.p4"

typedef bit<(SLOT_BITS + PASS_BITS + 1)> state_t;   // 0, slot, pass; or 1, slot, 0: its norms
#define STATES (2 * CELLS)

// The events of thc.p4.
const event_t EVENT_ACCEPTED = 0;
const event_t EVENT_DUPLICATE = 1;
const event_t EVENT_LATE = 2;
const event_t EVENT_SUMS = 3;
const event_t EVENT_NORM = 4;
const event_t EVENT_STRAGGLER = 5;
const event_t EVENT_NORM_DIFFERS = 6;
const event_t EVENT_BAD_NORM = 7;
const event_t EVENT_BAD_SLOT = 8;
const event_t EVENT_BAD_FORMAT = 9;
const event_t EVENT_SPOOFED_PASS = 10;
const event_t EVENT_STATUS = 11;
const event_t EVENT_UNKNOWN_TYPE = 12;
const event_t EVENT_ROUND_AHEAD = 13;
const event_t EVENT_OTHER_EPOCH = 14;

// No completion: an event that is not one of those.
const event_t NOTHING = 0;

const operation_t NORM = 3;
const operation_t STATUS = 4;
const operation_t NORM_STATUS = 5;
const operation_t OLD_CODES = 6;    // of another epoch than the job's
const operation_t OLD_HEADER = 7;

// The packet's round and norm beside those of the cell, one bit for each combination of: higher
// round (lowest bit), equal round, equal norm, next round.
typedef bit<16> relation_t;
const relation_t LOWER = 0x0011;
const relation_t HIGHER = 0x2222;
const relation_t NEXT = 0x2200;
const relation_t OTHER_NORM = 0x0004;
const relation_t EQUAL = 0x0040;

// The cell's epoch beside the packet's: another, as in a cell that the job's epoch has not used.
typedef bit<2> use_t;
const use_t UNUSED = 1;
const use_t USED = 2;

// What the relation lets the packet do with the cell.
typedef bit<2> access_t;
const access_t KEEP_OUT = 0;
const access_t START = 1;
const access_t JOIN = 2;        // if its worker is new and the cell open
const access_t LOOK = 3;

// The count beside the quorum before this packet, likewise: below it, still below with this one.
typedef bit<4> room_t;
const room_t FULL = 1;
const room_t LAST_PLACE = 2;

struct round_and_norm_t { bit<32> round; bit<32> norm; }
struct workers_t { bit<32> low; bit<32> high; }

// One of the combinations of a relation.
#define IN(relation) 0 &&& ~relation

// Precedes a packet between two passes, and from ingress to egress.
header recirculation_t {
    @padding bit<7> unused;
    bit<9>  ingress_port;
    bit<8>  job;
    bit<8>  receiver;       // the sender, who gets the answer
    bit<8>  count;          // of the last pass, for the result
    bit<8>  skip;           // passes whose codes or sums are left in an answer without payload
    bit<1>  elsewhere;      // on its way to the pipe with the registers: not a pass yet
    bit<1>  collecting;
    bit<1>  closing;        // collecting, and has closed the last pass
    bit<1>  emptied;        // an answer, as soon as it has no payload
    bit<1>  addressed;
    @padding bit<3> unused2;
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
    bit<8>  quorum;
    bit<16> slots;          // less the packet's slot: 0 if it has none
    bit<16> slot;
    bit<16> group;
    bit<32> bit_low;
    bit<32> bit_high;
    bit<8>  off_epoch;      // the bits in which the packet's epoch is not the job's
    bit<1>  next_only;      // a cell takes its round and the next

    operation_t operation;
    event_t event;
    bit<1>  looks_up;

    // of the cell
    cell_t  cell;
    state_t state;
    use_t   use;
    relation_t relation;
    access_t access;
    bit<1>  straggler;
    bit<32> round;
    bit<32> norm;
    bit<32> seen_low;
    bit<32> seen_high;
    bit<1>  duplicate;
    bit<8>  count;
    room_t  room;
    bit<32> summed_low;
    bit<32> summed_high;
    update_t update;
    bit<1>  closed;
    bit<1>  closing;
    bit<1>  finished;       // no pass follows: its event counts
    event_t completion;
}

#include "include/tna_parser.p4"

control ThcIngress(inout headers_t hdr, inout metadata_t meta,
                   in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Counter<bit<32>, bit<12>>(4096, CounterType_t.PACKETS) events;
    // Completed sums and norms, at the same indices: a packet counts once in a counter.
    Counter<bit<32>, bit<12>>(4096, CounterType_t.PACKETS) completions;

#include "include/tna_arrivals.p4"

    // -- members -------------------------------------------------------------------------------

    action admit(bit<8> workers, bit<8> quorum, bit<16> slot_base, bit<16> slots, bit<16> group,
                 bit<64> worker_bit, bit<8> epoch, bit<1> next_only) {
        meta.member = 1;
        meta.off_epoch = hdr.agg.epoch ^ epoch;
        meta.next_only = next_only;
        meta.quorum = quorum;
        meta.slot = slot_base;
        meta.slots = slots;
        meta.group = group;
        meta.bit_high = worker_bit[63:32];
        meta.bit_low = worker_bit[31:0];
    }

    table members {
        key = {
            hdr.agg.job : exact @name("job");
            hdr.agg.worker : exact @name("worker");
            meta.port : exact @name("port");
        }
        actions = { admit; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    action find_slot() {
        meta.slots = meta.slots |-| hdr.agg.slot;
        meta.slot = meta.slot + hdr.agg.slot;
    }

    // -- the operation, or why it is refused ----------------------------------------------------

    action refuse(event_t event) {
        meta.operation = REFUSED;
        meta.event = event;
    }

    action of_pass(operation_t operation) {
        meta.operation = operation;
        meta.cell = meta.slot[SLOT_BITS - 1:0] ++ hdr.agg.pass[PASS_BITS - 1:0];
        meta.state = 1w0 ++ meta.slot[SLOT_BITS - 1:0] ++ hdr.agg.pass[PASS_BITS - 1:0];
    }

    action of_last_pass(operation_t operation) {
        meta.operation = operation;
        meta.state = 1w0 ++ meta.slot[SLOT_BITS - 1:0] ++ (bit<PASS_BITS>) LAST_PASS;
    }

    action of_norm(operation_t operation) {
        meta.operation = operation;
        meta.state = 1w1 ++ meta.slot[SLOT_BITS - 1:0] ++ (bit<PASS_BITS>) 0;
    }

#define HEADER_ONLY (IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES)
#define WITH_CODES (HEADER_ONLY + CODES_BYTES)
#define REQUEST(type, epoch, flags, sign, exponent, length) \
    (0, _, 0, 0, _, epoch, type, flags, SUM_BITS, CODE_BITS, sign, exponent, length, length - IPV4_BYTES)

    table operations {
        key = {
            meta.again : ternary;
            hdr.recirculation.collecting : ternary;
            from_parser.parser_err : ternary;
            hdr.agg.pass : ternary;
            meta.slots : ternary;
            meta.off_epoch : ternary;
            hdr.agg.type : ternary;
            hdr.agg.flags : ternary;
            hdr.agg.sum_bits : ternary;
            hdr.agg.code_bits : ternary;
            hdr.agg.norm[31:31] : ternary @name("norm_sign");
            hdr.agg.norm[30:23] : ternary @name("norm_exponent");
            hdr.ipv4.total_length : ternary;
            hdr.udp.length : ternary;
        }
        actions = { refuse; of_pass; of_last_pass; of_norm; }
        const default_action = refuse(EVENT_SPOOFED_PASS);
        const entries = {
            (0, _, _, 0, 0, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_SLOT);
            (1, _, _, _, 0, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_SLOT);
            (1, 0, 0, _, _, 0, TYPE_CODES, _, _, _, _, _, _, _) : of_pass(CODES);
            (1, 1, 0, _, _, 0, TYPE_CODES, _, _, _, _, _, _, _) : of_pass(COLLECT);
            (1, _, 0, _, _, _, TYPE_CODES, _, _, _, _, _, _, _) : refuse(EVENT_OTHER_EPOCH);
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            REQUEST(TYPE_CODES, 0, 0, _, _, WITH_CODES) : of_pass(CODES);
            REQUEST(TYPE_CODES, _, 0, _, _, WITH_CODES) : of_pass(OLD_CODES);
            (0, _, _, 0, _, _, TYPE_CODES, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            REQUEST(TYPE_NORM, 0, 0, 1, _, HEADER_ONLY) : refuse(EVENT_BAD_NORM);
            REQUEST(TYPE_NORM, 0, 0, _, 255, HEADER_ONLY) : refuse(EVENT_BAD_NORM);
            REQUEST(TYPE_NORM, 0, 0, _, _, HEADER_ONLY) : of_norm(NORM);
            REQUEST(TYPE_NORM, _, 0, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
            REQUEST(TYPE_STATUS, 0, 0, _, _, HEADER_ONLY) : of_last_pass(STATUS);
            REQUEST(TYPE_STATUS, 0, FLAG_NORM, _, _, HEADER_ONLY) : of_norm(NORM_STATUS);
            REQUEST(TYPE_STATUS, _, 0, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
            REQUEST(TYPE_STATUS, _, FLAG_NORM, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
            REQUEST(_, _, 0, _, _, HEADER_ONLY) : refuse(EVENT_UNKNOWN_TYPE);
            (0, _, _, 0, _, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
        }
        size = 32;
    }

    // -- the state of the cell ------------------------------------------------------------------

    Register<bit<8>, state_t>(STATES) epochs;
    Register<round_and_norm_t, state_t>(STATES) rounds;
    Register<workers_t, state_t>(STATES) seen;
    Register<bit<8>, state_t>(STATES) counts;
    Register<workers_t, state_t>(STATES) summed;
    Register<bit<32>, bit<SLOT_BITS>>(SLOTS) norm_max;

    RegisterAction<bit<8>, state_t, use_t>(epochs) enter_epoch = {
        void apply(inout bit<8> epoch, out use_t use) {
            use = this.predicate(epoch == hdr.agg.epoch);
            epoch = hdr.agg.epoch;
        }
    };
    RegisterAction<bit<8>, state_t, use_t>(epochs) look_at_epoch = {
        void apply(inout bit<8> epoch, out use_t use) {
            use = this.predicate(epoch == hdr.agg.epoch);
        }
    };

    action use_cell() { meta.use = enter_epoch.execute(meta.state); }
    action see_use() { meta.use = look_at_epoch.execute(meta.state); }

    @hidden table find_use {
        key = { meta.operation : exact; }
        actions = { use_cell; see_use; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            CODES : use_cell();
            NORM : use_cell();
            STATUS : see_use();
            NORM_STATUS : see_use();
            COLLECT : see_use();
        }
        size = 8;
    }

    // Rounds are serial numbers: a is higher than b if a - b is above 0 as a signed number.
#define HIGHER_ROUND ((int<32>) (hdr.agg.round - cell.round) > 0)
#define NEXT_ROUND (hdr.agg.round - cell.round == 1)
#define RELATION this.predicate<relation_t>(HIGHER_ROUND, hdr.agg.round == cell.round, \
                                hdr.agg.norm == cell.norm, NEXT_ROUND)

    RegisterAction3<round_and_norm_t, state_t, bit<32>, bit<32>, relation_t>(rounds) enter_round = {
        void apply(inout round_and_norm_t cell, out bit<32> round, out bit<32> norm,
                   out relation_t relation) {
            relation = RELATION;
            if (HIGHER_ROUND) {
                cell.round = hdr.agg.round;
                cell.norm = hdr.agg.norm;
            }
            round = cell.round;
            norm = cell.norm;
        }
    };
    RegisterAction3<round_and_norm_t, state_t, bit<32>, bit<32>, relation_t>(rounds) enter_next_round = {
        void apply(inout round_and_norm_t cell, out bit<32> round, out bit<32> norm,
                   out relation_t relation) {
            relation = RELATION;
            if (NEXT_ROUND) {
                cell.round = hdr.agg.round;
                cell.norm = hdr.agg.norm;
            }
            round = cell.round;
            norm = cell.norm;
        }
    };
    RegisterAction3<round_and_norm_t, state_t, bit<32>, bit<32>, relation_t>(rounds) enter_any_round = {
        void apply(inout round_and_norm_t cell, out bit<32> round, out bit<32> norm,
                   out relation_t relation) {
            relation = RELATION;
            cell.round = hdr.agg.round;
            cell.norm = hdr.agg.norm;
            round = cell.round;
            norm = cell.norm;
        }
    };
    RegisterAction3<round_and_norm_t, state_t, bit<32>, bit<32>, relation_t>(rounds) read_round = {
        void apply(inout round_and_norm_t cell, out bit<32> round, out bit<32> norm,
                   out relation_t relation) {
            relation = RELATION;
            round = cell.round;
            norm = cell.norm;
        }
    };

    action enter() { meta.round = enter_round.execute(meta.state, meta.norm, meta.relation); }
    action enter_next() { meta.round = enter_next_round.execute(meta.state, meta.norm, meta.relation); }
    action enter_any() { meta.round = enter_any_round.execute(meta.state, meta.norm, meta.relation); }
    action look() { meta.round = read_round.execute(meta.state, meta.norm, meta.relation); }

    @hidden table find_round {
        key = { meta.operation : exact; meta.use : ternary; meta.next_only : ternary; }
        actions = { enter; enter_next; enter_any; look; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, UNUSED, _) : enter_any();
            (CODES, _, 1) : enter_next();
            (CODES, _, _) : enter();
            (NORM, UNUSED, _) : enter_any();
            (NORM, _, _) : enter();     // a slot has a norm once in a partition
            (STATUS, USED, _) : look();
            (NORM_STATUS, USED, _) : look();
            (COLLECT, _, _) : look();
        }
        size = 8;
    }

    action allow(access_t access, event_t event) {
        meta.access = access;
        meta.event = event;
    }
    action too_late() {
        meta.access = LOOK;
        meta.event = EVENT_STRAGGLER;
        meta.straggler = 1;
    }
    action turn_away(event_t event) {
        meta.operation = REFUSED;
        meta.event = event;
    }

    // Two combinations of a relation are one number under a mask: one bit is set in all.
    @hidden table relations {
        key = {
            meta.operation : exact;
            meta.use : ternary;
            meta.next_only : ternary;
            meta.relation : ternary;
        }
        actions = { allow; too_late; turn_away; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, UNUSED, _, _) : allow(START, EVENT_ACCEPTED);
            (CODES, _, _, IN(LOWER)) : too_late();
            (CODES, _, _, IN(NEXT)) : allow(START, EVENT_ACCEPTED);
            (CODES, _, 1, IN(HIGHER)) : turn_away(EVENT_ROUND_AHEAD);
            (CODES, _, _, IN(HIGHER)) : allow(START, EVENT_ACCEPTED);
            (CODES, _, _, IN(EQUAL)) : allow(JOIN, EVENT_ACCEPTED);
            (CODES, _, _, _) : turn_away(EVENT_NORM_DIFFERS);
            (NORM, UNUSED, _, _) : allow(START, EVENT_ACCEPTED);
            (NORM, _, _, IN(LOWER)) : too_late();
            (NORM, _, _, IN(HIGHER)) : allow(START, EVENT_ACCEPTED);
            (NORM, _, _, _) : allow(JOIN, EVENT_ACCEPTED);
            (STATUS, USED, _, _) : allow(LOOK, EVENT_STATUS);
            (NORM_STATUS, USED, _, _) : allow(LOOK, EVENT_STATUS);
            (COLLECT, _, _, IN(LOWER)) : too_late();
            (COLLECT, _, _, IN(EQUAL)) : allow(LOOK, EVENT_LATE);
            (COLLECT, _, _, _) : turn_away(EVENT_NORM_DIFFERS);
        }
        size = 16;
    }

    RegisterAction2<workers_t, state_t, bit<32>, bit<32>>(seen) see_first = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = 0;
            high = 0;
            workers.low = meta.bit_low;
            workers.high = meta.bit_high;
        }
    };
    RegisterAction2<workers_t, state_t, bit<32>, bit<32>>(seen) see = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = workers.low;
            high = workers.high;
            workers.low = workers.low | meta.bit_low;
            workers.high = workers.high | meta.bit_high;
        }
    };

    // Of the workers seen before, keep the packet's.
    action keep_own_bit() {
        meta.seen_low = meta.seen_low & meta.bit_low;
        meta.seen_high = meta.seen_high & meta.bit_high;
    }

    // In a table, as a condition would compute it and takes 44 bits.
    @hidden table own_bit {
        actions = { keep_own_bit; }
        const default_action = keep_own_bit();
        size = 1;
    }

    RegisterAction2<bit<8>, state_t, bit<8>, room_t>(counts) count_first = {
        void apply(inout bit<8> count, out bit<8> result, out room_t room) {
            count = 1;
            result = count;
            room = 0;
        }
    };
    RegisterAction2<bit<8>, state_t, bit<8>, room_t>(counts) count_one = {
        void apply(inout bit<8> count, out bit<8> result, out room_t room) {
            room = this.predicate<room_t>(count < meta.quorum, count + 1 < meta.quorum);
            if (count < meta.quorum) { count = count + 1; }
            result = count;
        }
    };
    RegisterAction2<bit<8>, state_t, bit<8>, room_t>(counts) read_count = {
        void apply(inout bit<8> count, out bit<8> result, out room_t room) {
            room = this.predicate<room_t>(count < meta.quorum, count + 1 < meta.quorum);
            result = count;
        }
    };

    action start_count() { meta.count = count_first.execute(meta.state, meta.room); }
    action join_count() { meta.count = count_one.execute(meta.state, meta.room); }
    action look_at_count() { meta.count = read_count.execute(meta.state, meta.room); }

    @hidden table find_count {
        key = { meta.access : exact; meta.duplicate : ternary; }
        actions = { start_count; join_count; look_at_count; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (START, _) : start_count();
            (JOIN, 0) : join_count();
            (JOIN, 1) : look_at_count();
            (LOOK, _) : look_at_count();
        }
        size = 8;
    }

    action update_state(update_t update, bit<1> closed, bit<1> closing) {
        meta.update = update;
        meta.closed = closed;
        meta.closing = closing;
    }

    @hidden table updates {
        key = { meta.access : exact; meta.duplicate : ternary; meta.room : ternary; meta.quorum : ternary; }
        actions = { update_state; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (START, _, _, 1) : update_state(UPDATE_START, 1, 1);
            (START, _, _, _) : update_state(UPDATE_START, 0, 0);
            (JOIN, _, FULL, _) : update_state(UPDATE_READ, 1, 0);
            (JOIN, 1, _, _) : update_state(UPDATE_READ, 0, 0);
            (JOIN, 0, LAST_PLACE, _) : update_state(UPDATE_ADD, 1, 1);
            (JOIN, 0, _, _) : update_state(UPDATE_ADD, 0, 0);
            (LOOK, _, FULL, _) : update_state(UPDATE_READ, 1, 0);
            (LOOK, _, _, _) : update_state(UPDATE_READ, 0, 0);
        }
        size = 8;
    }

    RegisterAction2<workers_t, state_t, bit<32>, bit<32>>(summed) sum_first = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            workers.low = meta.bit_low;
            workers.high = meta.bit_high;
            low = workers.low;
            high = workers.high;
        }
    };
    RegisterAction2<workers_t, state_t, bit<32>, bit<32>>(summed) sum_one = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            workers.low = workers.low | meta.bit_low;
            workers.high = workers.high | meta.bit_high;
            low = workers.low;
            high = workers.high;
        }
    };
    RegisterAction2<workers_t, state_t, bit<32>, bit<32>>(summed) read_summed = {
        void apply(inout workers_t workers, out bit<32> low, out bit<32> high) {
            low = workers.low;
            high = workers.high;
        }
    };

    action start_summed() { meta.summed_low = sum_first.execute(meta.state, meta.summed_high); }
    action add_to_summed() { meta.summed_low = sum_one.execute(meta.state, meta.summed_high); }
    action look_at_summed() { meta.summed_low = read_summed.execute(meta.state, meta.summed_high); }

    @hidden table find_summed {
        key = { meta.update : exact; }
        actions = { start_summed; add_to_summed; look_at_summed; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            UPDATE_START : start_summed();
            UPDATE_ADD : add_to_summed();
            UPDATE_READ : look_at_summed();
        }
        size = 4;
    }

    RegisterAction<bit<32>, bit<SLOT_BITS>, bit<32>>(norm_max) norm_first = {
        void apply(inout bit<32> norm, out bit<32> result) {
            norm = hdr.agg.norm;
            result = norm;
        }
    };
    RegisterAction<bit<32>, bit<SLOT_BITS>, bit<32>>(norm_max) norm_larger = {
        void apply(inout bit<32> norm, out bit<32> result) {
            norm = max(norm, hdr.agg.norm);
            result = norm;
        }
    };
    RegisterAction<bit<32>, bit<SLOT_BITS>, bit<32>>(norm_max) read_norm = {
        void apply(inout bit<32> norm, out bit<32> result) { result = norm; }
    };

    action start_norm() { meta.norm = norm_first.execute(meta.slot[SLOT_BITS - 1:0]); }
    action join_norm() { meta.norm = norm_larger.execute(meta.slot[SLOT_BITS - 1:0]); }
    action look_at_norm() { meta.norm = read_norm.execute(meta.slot[SLOT_BITS - 1:0]); }

    @hidden table find_norm {
        key = { meta.operation : exact; meta.update : exact; }
        actions = { start_norm; join_norm; look_at_norm; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (NORM, UPDATE_START) : start_norm();
            (NORM, UPDATE_ADD) : join_norm();
            (NORM, UPDATE_READ) : look_at_norm();
            (NORM_STATUS, UPDATE_READ) : look_at_norm();
        }
        size = 4;
    }

    // -- what becomes of the packet -------------------------------------------------------------

    action next_pass() {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = hdr.agg.pass + 1;
    }

    // The header of a result is the last pass's.
    action collect_first(bit<1> closing) {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = LAST_PASS - 1;
        hdr.agg.bitmap = meta.summed_high ++ meta.summed_low;
        hdr.recirculation.collecting = 1;
        hdr.recirculation.closing = closing;
        hdr.recirculation.count = meta.count;
    }

    action collect_next() {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = hdr.agg.pass - 1;
    }

    action answer_sums(verdict_t verdict, event_t event, event_t completion) {
        meta.verdict = verdict;
        meta.event = event;
        meta.completion = completion;
        meta.finished = 1;
        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + SUMS_BYTES;
        hdr.agg.type = TYPE_SUMS;
        hdr.agg.worker = 0;
        hdr.agg.count = 8w0 ++ hdr.recirculation.count;
    }

    action fill_in(bit<4> type, bit<8> flags) {
        meta.finished = 1;
        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES;
        hdr.agg.type = type;
        hdr.agg.flags = flags;
        hdr.agg.pass = 0;
        hdr.agg.worker = 0;
        hdr.agg.count = 8w0 ++ meta.count;
        hdr.agg.epoch = hdr.agg.epoch ^ meta.off_epoch;
        hdr.agg.round = meta.round;
        hdr.agg.bitmap = meta.summed_high ++ meta.summed_low;
        hdr.agg.norm = meta.norm;
    }

    action answer(verdict_t verdict, bit<4> type, bit<8> flags, event_t event, event_t completion) {
        meta.verdict = verdict;
        meta.event = event;
        meta.completion = completion;
        fill_in(type, flags);
    }

    // A notice, which leaves when the rest of the payload has been skipped.
    action answer_after_payload(bit<4> type, event_t event) {
        meta.verdict = RECIRCULATE;
        meta.event = event;
        hdr.recirculation.emptied = 1;
        hdr.recirculation.skip = LAST_PASS - hdr.agg.pass;
        fill_in(type, 0);
    }

    action stop(event_t event) {
        meta.event = event;
        meta.finished = 1;
    }

    action count_refusal() { meta.finished = 1; }

    @hidden table outcomes {
        key = {
            meta.operation : exact;
            meta.straggler : ternary;
            hdr.agg.pass : ternary;
            meta.closed : ternary;
            meta.closing : ternary;
            meta.update : ternary;
            hdr.recirculation.closing : ternary;
        }
        actions = {
            next_pass; collect_first; collect_next; answer_sums; answer; answer_after_payload; stop;
            count_refusal;
        }
        const default_action = count_refusal();
        const entries = {
            (CODES, 1, LAST_PASS, _, _, _, _) : answer(ANSWER, TYPE_STRAGGLER, 0, EVENT_STRAGGLER, NOTHING);
            (CODES, 1, _, _, _, _, _) : answer_after_payload(TYPE_STRAGGLER, EVENT_STRAGGLER);
            (CODES, _, LAST_PASS, 1, 0, _, _) : collect_first(0);
            (CODES, _, LAST_PASS, 1, 1, _, _) : collect_first(1);
            (CODES, _, LAST_PASS, 0, _, UPDATE_READ, _) : stop(EVENT_DUPLICATE);
            (CODES, _, LAST_PASS, 0, _, _, _) : stop(EVENT_ACCEPTED);
            (CODES, _, _, _, _, _, _) : next_pass();
            (COLLECT, 1, _, _, _, _, _) : answer_after_payload(TYPE_STRAGGLER, EVENT_STRAGGLER);
            (COLLECT, _, 0, _, _, _, 1) : answer_sums(MULTICAST, EVENT_ACCEPTED, EVENT_SUMS);
            (COLLECT, _, 0, _, _, _, 0) : answer_sums(ANSWER, EVENT_LATE, NOTHING);
            (COLLECT, _, _, _, _, _, _) : collect_next();
            (NORM, 1, _, _, _, _, _) : answer(ANSWER, TYPE_STRAGGLER, 0, EVENT_STRAGGLER, NOTHING);
            (NORM, _, _, 1, 1, _, _) : answer(MULTICAST, TYPE_NORM_RESULT, 0, EVENT_ACCEPTED, EVENT_NORM);
            (NORM, _, _, 1, 0, _, _) : answer(ANSWER, TYPE_NORM_RESULT, 0, EVENT_LATE, NOTHING);
            (NORM, _, _, _, _, UPDATE_READ, _) : stop(EVENT_DUPLICATE);
            (NORM, _, _, _, _, _, _) : stop(EVENT_ACCEPTED);
            (STATUS, _, _, 0, _, _, _) : answer(ANSWER, TYPE_STATUS, FLAG_ANSWER, EVENT_STATUS, NOTHING);
            (STATUS, _, _, 1, _, _, _) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_CLOSED, EVENT_STATUS, NOTHING);
            (OLD_CODES, _, _, _, _, _, _) : answer_after_payload(TYPE_EPOCH, EVENT_OTHER_EPOCH);
            (OLD_HEADER, _, _, _, _, _, _) : answer(ANSWER, TYPE_EPOCH, 0, EVENT_OTHER_EPOCH, NOTHING);
            (NORM_STATUS, _, _, 0, _, _, _) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_NORM, EVENT_STATUS, NOTHING);
            (NORM_STATUS, _, _, 1, _, _, _) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_NORM | FLAG_CLOSED, EVENT_STATUS, NOTHING);
        }
        size = 32;
    }

    action first_arrival() {
        hdr.recirculation.setValid();
        hdr.recirculation.ingress_port = intrinsic.ingress_port;
        hdr.recirculation.receiver = hdr.agg.worker;
        hdr.recirculation.count = 0;
        hdr.recirculation.skip = 0;
        hdr.recirculation.elsewhere = 0;
        hdr.recirculation.collecting = 0;
        hdr.recirculation.closing = 0;
        hdr.recirculation.emptied = 0;
    }

    apply {
        hdr.sums.setValid();
        if (!hdr.recirculation.isValid()) {
            port_in.count(intrinsic.ingress_port);
            first_arrival();
        }
        if (meta.again == 1) {
            meta.local = 1;
        } else if (meta.damaged == 1) {
            damaged.count(intrinsic.ingress_port);
        } else if (hdr.ipv4.isValid() && meta.wrong_checksum == 0 && hdr.ipv4.ttl != 0) {
            routes.apply();
        }
        if (hdr.agg.isValid()) {
            members.apply();
            find_slot();
        }

        if (meta.local == 1 && meta.again == 0 && !hdr.agg.isValid()) {
            if (hdr.udp.isValid() && hdr.udp.dst_port == AGGREGATION_PORT) {
                other_version.count(intrinsic.ingress_port);
            }
        } else if (meta.local == 1) {
            if (hdr.recirculation.emptied == 1) {
                meta.verdict = ANSWER;
            } else if (intrinsic.ingress_port[8:7] != AGGREGATING_PIPE) {
                hdr.recirculation.elsewhere = 1;
                meta.verdict = RECIRCULATE;
            } else if (meta.member == 0) {
                unknown_member.count(0);
            } else {
                hdr.recirculation.elsewhere = 0;
                operations.apply();
                find_use.apply();
                find_round.apply();
                relations.apply();
                if (meta.access == START) {
                    meta.seen_low = see_first.execute(meta.state, meta.seen_high);
                } else if (meta.access == JOIN) {
                    meta.seen_low = see.execute(meta.state, meta.seen_high);
                }
                own_bit.apply();
                if (meta.seen_low != 0) {
                    meta.duplicate = 1;
                } else if (meta.seen_high != 0) {
                    meta.duplicate = 1;
                }
                find_count.apply();
                updates.apply();
                find_summed.apply();
                find_norm.apply();
                outcomes.apply();
                if (meta.finished == 1) {
                    events.count(hdr.agg.job ++ meta.event);
                }
                if (meta.completion != 0) {
                    completions.count(hdr.agg.job ++ meta.completion);
                }
                hdr.codes.setInvalid();
            }
        }

#define BLOCK_APPLY(n) block##n.apply(hdr.agg.job, meta.looks_up, hdr.codes.block##n, meta.cell, meta.operation, meta.update, hdr.sums.block##n);
        EACH_BLOCK(BLOCK_APPLY)

        // The sums of a pass go with the packet from the last pass on, if it is closed.
        if (hdr.recirculation.collecting == 0 || hdr.recirculation.emptied == 1) {
            hdr.sums.setInvalid();
        }
        if (meta.verdict == RECIRCULATE) {
            for_tm.ucast_egress_port = RECIRCULATION_PORT;
            for_tm.bypass_egress = 1;
        } else {
            hdr.recirculation.job = hdr.agg.job;
            hdr.recirculation.addressed = 1;
            if (meta.verdict == MULTICAST) {
                for_tm.mcast_grp_a = meta.group;
            } else if (meta.verdict == ANSWER) {
                for_tm.ucast_egress_port = meta.port;
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
