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
//
// Switches in levels sum one job, as in thc.p4. A chip has one part in it: with ROLE=leaf it adds the
// codes of workers, with ROLE=node the partials of switches, whose passes are as those of codes. A
// partial leaves as a result does, collected. What comes from a parent looks into the slot as a
// request for its status does, for the switch's own bitmap: a leaf's goes to its workers in the
// path's place, and a node's says which children are not in a result. Every slot has its parent in
// `uplinks`, and the number of workers in a result is a parameter of members.

#ifdef ROLE
#define leaf 11
#define node 12
#if ROLE == leaf
#define LEAF
#elif ROLE == node
#define NODE
#else
#error "ROLE must be leaf or node"
#endif
#undef leaf
#undef node
#endif

#include <core.p4>
#include <t2na.p4>

#include "include/tna_aggregation.p4"

typedef bit<(SLOT_BITS + PASS_BITS + 1)> state_t;   // 0, slot, pass; or 1, slot, 0: its norms
#define STATES (2 * CELLS)

// No completion: an event that is not one of those.
const event_t NOTHING = 0;

const operation_t NORM = 3;
const operation_t STATUS = 4;
const operation_t NORM_STATUS = 5;
const operation_t OLD_CODES = 6;    // of another epoch than the job's
const operation_t OLD_HEADER = 7;
#ifdef ROLE
// Beside QUESTION: its like of a norm, and from a parent a result and another answer.
const operation_t NORM_QUESTION = 9;
const operation_t DOWN_RESULT = 10;
const operation_t DOWN_NOTICE = 11;
#endif

// The packet's round and norm beside those of the cell, one bit for each combination of: higher
// round (lowest bit), equal round, equal norm, next round.
typedef bit<16> relation_t;
const relation_t LOWER = 0x0011;
const relation_t HIGHER = 0x2222;
const relation_t NEXT = 0x2200;
const relation_t OTHER_NORM = 0x0004;
const relation_t EQUAL = 0x0040;
#ifdef ROLE
const relation_t SAME_ROUND = 0x0044;
#endif

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

// Of a table of entries here, with the program's role or without.
#ifdef ROLE
#define SIZE(alone, in_tree) in_tree
#else
#define SIZE(alone, in_tree) alone
#endif

// Precedes a packet between two passes, and from ingress to egress.
header recirculation_t {
    @padding bit<7> unused;
    bit<9>  ingress_port;
    bit<8>  job;
    bit<8>  receiver;       // the sender, who gets the answer
#ifdef ROLE
    bit<16> count;          // of the workers in a result
#else
    bit<8>  count;          // of the last pass, for the result
#endif
    bit<8>  skip;           // passes whose codes or sums are left in an answer without payload
    bit<1>  elsewhere;      // on its way to the pipe with the registers: not a pass yet
    bit<1>  collecting;
    bit<1>  closing;        // collecting, and has closed the last pass
    bit<1>  emptied;        // an answer, as soon as it has no payload
    bit<1>  addressed;
    @padding bit<3> unused2;
#ifdef NODE
    bit<32> summed_low;     // of the children in a result
    bit<32> summed_high;
#endif
}

#ifdef ROLE
header hops_t { bit<32> high; bit<32> low; }   // path_t
#endif

// The bitmap of the children that were summed. A leaf's is in the place of the path that it goes to
// workers in.
#if defined LEAF
#define SUMMED(half) hdr.path.half
#elif defined NODE
#define SUMMED(half) hdr.recirculation.summed_##half
#else
#define SUMMED(half) meta.summed_##half
#endif

struct headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
    aggregation_t   agg;
#ifdef ROLE
    hops_t          path;
#endif
    sums_t          sums;
#ifndef NODE
    codes_t         codes;
#endif
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
#ifdef ROLE

    // of this switch in the job's tree
    bit<1>  has_path;       // the packet came with one
    bit<1>  from_parent;
    bit<1>  has_parent;
    bit<1>  asks;           // some switch of the job closes without all of its children
    bit<1>  pushes;         // the sender's number goes up with the packet
    PortId_t parent;        // the port to the slot's parent
    bit<8>  number;         // its own, at that parent
    bit<8>  above;          // the parent's number among the receivers
#endif

    operation_t operation;
    event_t event;
#ifndef NODE
    bit<1>  looks_up;
#endif

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
#ifndef ROLE
    bit<32> summed_low;
    bit<32> summed_high;
#endif
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
#ifdef ROLE
        hdr.recirculation.count = 8w0 ++ quorum;
#endif
    }

#ifdef ROLE
    // As a child of a switch that is not alone in its job. count: of the workers in its results.
    action admit_in_tree(bit<8> workers, bit<8> quorum, bit<16> slot_base, bit<16> slots,
                         bit<16> group, bit<64> worker_bit, bit<8> epoch, bit<1> next_only,
                         bit<1> has_parent, bit<1> asks, bit<16> count) {
        admit(workers, quorum, slot_base, slots, group, worker_bit, epoch, next_only);
        meta.has_parent = has_parent;
        meta.asks = asks;
        hdr.recirculation.count = count;
    }

    // From a parent: to one child where the path has its number, else to the group.
    action pass_down(bit<8> quorum, bit<16> slot_base, bit<16> slots, bit<16> group, bit<9> port,
                     bit<8> epoch, bit<8> receiver) {
        meta.member = 1;
        meta.from_parent = 1;
        meta.off_epoch = hdr.agg.epoch ^ epoch;
        meta.quorum = quorum;
        meta.slot = slot_base;
        meta.slots = slots;
        meta.group = group;
        meta.port = port;
        hdr.recirculation.receiver = receiver;
    }

    table parents {
        key = {
            hdr.agg.job : exact @name("job");
            meta.port : exact @name("port");
            hdr.path.low[7:0] : exact @name("hop");
        }
        actions = { pass_down; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

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
#endif

    table members {
        key = {
            hdr.agg.job : exact @name("job");
            hdr.agg.worker : exact @name("worker");
            meta.port : exact @name("port");
        }
#ifdef ROLE
        actions = { admit; admit_in_tree; @defaultonly NoAction; }
#else
        actions = { admit; @defaultonly NoAction; }
#endif
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

#ifdef NODE
    action of_question() {
        meta.operation = QUESTION;
        meta.cell = meta.slot[SLOT_BITS - 1:0] ++ (bit<PASS_BITS>) LAST_PASS;
        meta.state = 1w0 ++ meta.slot[SLOT_BITS - 1:0] ++ (bit<PASS_BITS>) LAST_PASS;
    }

#define OWN_FLAGS FLAG_PATH
#define ANSWER_BYTES (UDP_BYTES + AGGREGATION_BYTES + PATH_BYTES)
#define WITH_PAYLOAD (HEADER_ONLY + SUMS_BYTES)
#else
#define OWN_FLAGS 0
#define ANSWER_BYTES (UDP_BYTES + AGGREGATION_BYTES)
#define WITH_PAYLOAD (HEADER_ONLY + CODES_BYTES)
#endif
#ifdef ROLE
#define DOWN(type, epoch, length) \
    (0, _, _, 0, _, epoch, type, FLAG_PATH &&& ~FLAG_UNCOUNTED, SUM_BITS, CODE_BITS, _, _, \
     length, length - IPV4_BYTES)
#endif
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
#ifdef NODE
        actions = { refuse; of_pass; of_last_pass; of_norm; of_question; }
#else
        actions = { refuse; of_pass; of_last_pass; of_norm; }
#endif
        const default_action = refuse(EVENT_SPOOFED_PASS);
        const entries = {
            (0, _, _, 0, 0, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_SLOT);
            // What the first pass let in, all passes take, in whatever epoch the job is by then.
            (1, 0, 0, _, _, _, PAYLOAD_TYPE, _, _, _, _, _, _, _) : of_pass(CODES);
            (1, 1, 0, _, _, _, PAYLOAD_TYPE, _, _, _, _, _, _, _) : of_pass(COLLECT);
#ifdef NODE
            (1, 1, 0, _, _, _, TYPE_SUMS, _, _, _, _, _, _, _) : of_pass(COLLECT);
#endif
            (1, _, _, _, _, _, _, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            REQUEST(PAYLOAD_TYPE, 0, OWN_FLAGS, _, _, WITH_PAYLOAD) : of_pass(CODES);
            REQUEST(PAYLOAD_TYPE, _, OWN_FLAGS, _, _, WITH_PAYLOAD) : of_pass(OLD_CODES);
            (0, _, _, 0, _, _, PAYLOAD_TYPE, _, _, _, _, _, _, _) : refuse(EVENT_BAD_FORMAT);
            REQUEST(TYPE_NORM, 0, OWN_FLAGS, 1, _, HEADER_ONLY) : refuse(EVENT_BAD_NORM);
            REQUEST(TYPE_NORM, 0, OWN_FLAGS, _, 255, HEADER_ONLY) : refuse(EVENT_BAD_NORM);
            REQUEST(TYPE_NORM, 0, OWN_FLAGS, _, _, HEADER_ONLY) : of_norm(NORM);
            REQUEST(TYPE_NORM, _, OWN_FLAGS, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
#ifdef NODE
            REQUEST(TYPE_QUESTION, 0, FLAG_PATH, _, _, HEADER_ONLY) : of_question();
            REQUEST(TYPE_QUESTION, 0, FLAG_PATH | FLAG_NORM, _, _, HEADER_ONLY) : of_norm(NORM_QUESTION);
            REQUEST(TYPE_QUESTION, _, FLAG_PATH, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
            REQUEST(TYPE_QUESTION, _, FLAG_PATH | FLAG_NORM, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
#else
            REQUEST(TYPE_STATUS, 0, 0, _, _, HEADER_ONLY) : of_last_pass(STATUS);
            REQUEST(TYPE_STATUS, 0, FLAG_NORM, _, _, HEADER_ONLY) : of_norm(NORM_STATUS);
            REQUEST(TYPE_STATUS, _, 0, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
            REQUEST(TYPE_STATUS, _, FLAG_NORM, _, _, HEADER_ONLY) : of_norm(OLD_HEADER);
#endif
            REQUEST(_, _, OWN_FLAGS, _, _, HEADER_ONLY) : refuse(EVENT_UNKNOWN_TYPE);
#ifdef ROLE
            DOWN(TYPE_SUMS, 0, HEADER_ONLY + PATH_BYTES + SUMS_BYTES) : of_last_pass(DOWN_RESULT);
            DOWN(TYPE_SUMS, _, HEADER_ONLY + PATH_BYTES + SUMS_BYTES) : refuse(EVENT_OTHER_EPOCH);
            DOWN(TYPE_NORM_RESULT, 0, HEADER_ONLY + PATH_BYTES) : of_norm(DOWN_RESULT);
            DOWN(TYPE_STRAGGLER, 0, HEADER_ONLY + PATH_BYTES) : of_norm(DOWN_NOTICE);
            DOWN(TYPE_EPOCH, _, HEADER_ONLY + PATH_BYTES) : of_norm(DOWN_NOTICE);
            DOWN(TYPE_NORM_RESULT, _, HEADER_ONLY + PATH_BYTES) : refuse(EVENT_OTHER_EPOCH);
            DOWN(TYPE_STRAGGLER, _, HEADER_ONLY + PATH_BYTES) : refuse(EVENT_OTHER_EPOCH);
#endif
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
#ifdef ROLE
            QUESTION : see_use();
            NORM_QUESTION : see_use();
            DOWN_RESULT : see_use();
#endif
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
#ifdef ROLE
            (QUESTION, USED, _) : look();
            (NORM_QUESTION, USED, _) : look();
            (DOWN_RESULT, USED, _) : look();
#endif
        }
        size = SIZE(8, 16);
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
#ifdef ROLE
            (DOWN_RESULT, USED, _, IN(SAME_ROUND)) : allow(LOOK, EVENT_PASSED_DOWN);
            (DOWN_RESULT, _, _, _) : allow(KEEP_OUT, EVENT_PASSED_DOWN);
            (DOWN_NOTICE, _, _, _) : allow(KEEP_OUT, EVENT_PASSED_DOWN);
#endif
#ifdef NODE
            (QUESTION, USED, _, IN(LOWER)) : too_late();
            (QUESTION, USED, _, IN(SAME_ROUND)) : allow(LOOK, EVENT_DUPLICATE);
            (QUESTION, _, _, _) : allow(KEEP_OUT, EVENT_DUPLICATE);
            (NORM_QUESTION, USED, _, IN(LOWER)) : too_late();
            (NORM_QUESTION, USED, _, IN(SAME_ROUND)) : allow(LOOK, EVENT_DUPLICATE);
            (NORM_QUESTION, _, _, _) : allow(KEEP_OUT, EVENT_DUPLICATE);
#endif
        }
        size = SIZE(16, 32);
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

    action start_summed() { SUMMED(low) = sum_first.execute(meta.state, SUMMED(high)); }
    action add_to_summed() { SUMMED(low) = sum_one.execute(meta.state, SUMMED(high)); }
    action look_at_summed() { SUMMED(low) = read_summed.execute(meta.state, SUMMED(high)); }

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
#ifdef NODE
            (NORM_QUESTION, UPDATE_READ) : look_at_norm();
#endif
        }
        size = SIZE(4, 8);
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
#ifdef NODE
        hdr.agg.type = TYPE_PARTIAL_SUMS;   // which a question is from here on
        hdr.agg.norm = meta.norm;
#else
        hdr.agg.bitmap = SUMMED(high) ++ SUMMED(low);
#endif
        hdr.recirculation.collecting = 1;
        hdr.recirculation.closing = closing;
#ifndef ROLE
        hdr.recirculation.count = meta.count;
#endif
    }

#ifdef NODE
    // What answers a switch has the path of its packet, behind the header.
    action return_path() {
        hdr.path.setValid();
        hdr.path.high = hdr.agg.bitmap[63:32];
        hdr.path.low = hdr.agg.bitmap[31:0];
        hdr.agg.bitmap = SUMMED(high) ++ SUMMED(low);
    }

    action collect_first_of_result(bit<1> closing) {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = LAST_PASS - 1;
        hdr.agg.type = TYPE_SUMS;
        hdr.agg.norm = meta.norm;
        hdr.recirculation.collecting = 1;
        hdr.recirculation.closing = closing;
        return_path();
    }
#endif

    action collect_next() {
        meta.verdict = RECIRCULATE;
        hdr.agg.pass = hdr.agg.pass - 1;
    }

    action answer_sums(verdict_t verdict, event_t event, event_t completion) {
        meta.verdict = verdict;
        meta.event = event;
        meta.completion = completion;
        meta.finished = 1;
        hdr.udp.length = ANSWER_BYTES + SUMS_BYTES;
        hdr.agg.type = TYPE_SUMS;
        hdr.agg.worker = 0;
#ifdef ROLE
        hdr.agg.count = hdr.recirculation.count;
#else
        hdr.agg.count = 8w0 ++ hdr.recirculation.count;
#endif
#ifdef NODE
        SUMMED(high) = hdr.agg.bitmap[63:32];       // of the last pass
        SUMMED(low) = hdr.agg.bitmap[31:0];
#endif
    }

#define FILL_IN(type_, flags_, bytes) \
        meta.finished = 1; \
        hdr.udp.length = bytes; \
        hdr.agg.type = type_; \
        hdr.agg.flags = flags_; \
        hdr.agg.pass = 0; \
        hdr.agg.worker = 0; \
        hdr.agg.count = 8w0 ++ meta.count; \
        hdr.agg.epoch = hdr.agg.epoch ^ meta.off_epoch; \
        hdr.agg.round = meta.round;

    action fill_in(bit<4> type, bit<8> flags) {
        FILL_IN(type, flags, ANSWER_BYTES)
#ifdef NODE
        return_path();
#else
        hdr.agg.bitmap = SUMMED(high) ++ SUMMED(low);
#endif
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
        fill_in(type, OWN_FLAGS);
    }

#ifdef NODE
    // Of a result whose slot is in a later round by now: its path is behind the header already.
    action answer_after_sums() {
        meta.verdict = RECIRCULATE;
        meta.event = EVENT_STRAGGLER;
        hdr.recirculation.emptied = 1;
        hdr.recirculation.skip = LAST_PASS - hdr.agg.pass;
        FILL_IN(TYPE_STRAGGLER, FLAG_PATH, ANSWER_BYTES)
        hdr.agg.bitmap = SUMMED(high) ++ SUMMED(low);
        hdr.agg.norm = meta.norm;
    }

    // To all children, whatever path the packet has.
    action answer_all(bit<4> type, event_t completion) {
        answer(MULTICAST, type, FLAG_PATH, EVENT_ACCEPTED, completion);
        hdr.path.high = 0;
        hdr.path.low = 0;
    }

    action answer_all_sums() {
        answer_sums(MULTICAST, EVENT_ACCEPTED, EVENT_SUMS);
        hdr.path.high = 0;
        hdr.path.low = 0;
    }
#endif
#ifdef ROLE
    // Up with the sender's number on the path, or with an empty one, so that the answer is for all.

    action up_sums(event_t event, event_t completion) {
        meta.verdict = UP;
        meta.event = event;
        meta.completion = completion;
        meta.finished = 1;
        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + SUMS_BYTES;
        hdr.agg.type = TYPE_PARTIAL_SUMS;
        hdr.agg.flags = FLAG_PATH;
        hdr.agg.count = hdr.recirculation.count;
    }

    action send_sums_up() {
        up_sums(EVENT_ACCEPTED, EVENT_SUMS);
        hdr.agg.bitmap = 0;
    }

    action send_sums_up_again() {
        up_sums(EVENT_LATE, NOTHING);
        meta.pushes = 1;
    }

    action up_norm(event_t event, event_t completion) {
        meta.verdict = UP;
        meta.event = event;
        meta.completion = completion;
        FILL_IN(TYPE_NORM, FLAG_PATH, UDP_BYTES + AGGREGATION_BYTES)
        hdr.agg.norm = meta.norm;
    }

    action send_norm_up() {
        up_norm(EVENT_ACCEPTED, EVENT_NORM);
        hdr.agg.bitmap = 0;
    }

    action send_norm_up_again() {
        up_norm(EVENT_LATE, NOTHING);
        meta.pushes = 1;
    }

    action ask_parent(bit<8> flags) {
        meta.verdict = UP;
        meta.event = EVENT_DUPLICATE;
        meta.finished = 1;
        meta.pushes = 1;
        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES;
        hdr.agg.type = TYPE_QUESTION;
        hdr.agg.flags = flags;
        hdr.agg.pass = 0;
    }

    action pass_on(verdict_t verdict) {
        meta.verdict = verdict;
        meta.finished = 1;
#ifdef NODE
        hdr.path.low = hdr.path.high[7:0] ++ hdr.path.low[31:8];
        hdr.path.high = 8w0 ++ hdr.path.high[31:8];
#endif
    }

    // Of a cell that is not this round's, or not closed.
    action pass_on_alone(verdict_t verdict) {
        pass_on(verdict);
        SUMMED(low) = 0;
        SUMMED(high) = 0;
    }

    // From its number to a child's place on a path.
#ifdef NODE
    action push(bit<8> hop) { hdr.agg.bitmap = hdr.agg.bitmap[55:0] ++ hop; }
#else
    action push(bit<8> hop) { hdr.agg.bitmap = 56w0 ++ hop; }
#endif

#define PUSH(n) n : push(n + 1);
    @hidden table pushes {
        key = { hdr.recirculation.receiver : exact; }
        actions = { push; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            EACH_BLOCK(PUSH)
#define PUSH_MORE(n) n + 32 : push(n + 33);
            EACH_BLOCK(PUSH_MORE)
        }
        size = 64;
    }
#endif

    action stop(event_t event) {
        meta.event = event;
        meta.finished = 1;
    }

    action count_refusal() { meta.finished = 1; }

#ifdef ROLE
#define IN_TREE , _, _, _
#else
#define IN_TREE
#endif
    @hidden table outcomes {
        key = {
            meta.operation : exact;
            meta.straggler : ternary;
            hdr.agg.pass : ternary;
            meta.closed : ternary;
            meta.closing : ternary;
            meta.update : ternary;
            hdr.recirculation.closing : ternary;
#ifdef ROLE
            meta.has_parent : ternary;
            meta.asks : ternary;
            meta.port : ternary;
#endif
        }
        actions = {
            next_pass; collect_first; collect_next; answer_sums; answer; answer_after_payload; stop;
            count_refusal;
#ifdef ROLE
            send_sums_up; send_sums_up_again; send_norm_up; send_norm_up_again; ask_parent;
            pass_on; pass_on_alone;
#endif
#ifdef NODE
            collect_first_of_result; answer_after_sums; answer_all; answer_all_sums;
#endif
        }
        const default_action = count_refusal();
        const entries = {
            (CODES, 1, LAST_PASS, _, _, _, _ IN_TREE) : answer(ANSWER, TYPE_STRAGGLER, OWN_FLAGS, EVENT_STRAGGLER, NOTHING);
            (CODES, 1, _, _, _, _, _ IN_TREE) : answer_after_payload(TYPE_STRAGGLER, EVENT_STRAGGLER);
#ifdef NODE
            (CODES, _, LAST_PASS, 1, 0, _, _, 0, _, _) : collect_first_of_result(0);
            (CODES, _, LAST_PASS, 1, 1, _, _, 0, _, _) : collect_first_of_result(1);
#endif
            (CODES, _, LAST_PASS, 1, 0, _, _ IN_TREE) : collect_first(0);
            (CODES, _, LAST_PASS, 1, 1, _, _ IN_TREE) : collect_first(1);
#ifdef ROLE
            (CODES, _, LAST_PASS, 0, _, UPDATE_READ, _, 1, 1, _) : ask_parent(FLAG_PATH);
#endif
            (CODES, _, LAST_PASS, 0, _, UPDATE_READ, _ IN_TREE) : stop(EVENT_DUPLICATE);
            (CODES, _, LAST_PASS, 0, _, _, _ IN_TREE) : stop(EVENT_ACCEPTED);
            (CODES, _, _, _, _, _, _ IN_TREE) : next_pass();
#ifdef NODE
            (COLLECT, 1, _, _, _, _, _, 0, _, _) : answer_after_sums();
#endif
            (COLLECT, 1, _, _, _, _, _ IN_TREE) : answer_after_payload(TYPE_STRAGGLER, EVENT_STRAGGLER);
#ifdef ROLE
            (COLLECT, _, 0, _, _, _, 1, 1, _, _) : send_sums_up();
            (COLLECT, _, 0, _, _, _, 0, 1, _, _) : send_sums_up_again();
#endif
#ifdef NODE
            (COLLECT, _, 0, _, _, _, 1, 0, _, _) : answer_all_sums();
#else
            (COLLECT, _, 0, _, _, _, 1 IN_TREE) : answer_sums(MULTICAST, EVENT_ACCEPTED, EVENT_SUMS);
#endif
            (COLLECT, _, 0, _, _, _, 0 IN_TREE) : answer_sums(ANSWER, EVENT_LATE, NOTHING);
            (COLLECT, _, _, _, _, _, _ IN_TREE) : collect_next();
            (NORM, 1, _, _, _, _, _ IN_TREE) : answer(ANSWER, TYPE_STRAGGLER, OWN_FLAGS, EVENT_STRAGGLER, NOTHING);
#ifdef ROLE
            (NORM, _, _, 1, 1, _, _, 1, _, _) : send_norm_up();
            (NORM, _, _, 1, 0, _, _, 1, _, _) : send_norm_up_again();
            (NORM, _, _, 0, _, UPDATE_READ, _, 1, 1, _) : ask_parent(FLAG_PATH | FLAG_NORM);
#endif
#ifdef NODE
            (NORM, _, _, 1, 1, _, _, 0, _, _) : answer_all(TYPE_NORM_RESULT, EVENT_NORM);
#else
            (NORM, _, _, 1, 1, _, _ IN_TREE) : answer(MULTICAST, TYPE_NORM_RESULT, 0, EVENT_ACCEPTED, EVENT_NORM);
#endif
            (NORM, _, _, 1, 0, _, _ IN_TREE) : answer(ANSWER, TYPE_NORM_RESULT, OWN_FLAGS, EVENT_LATE, NOTHING);
            (NORM, _, _, _, _, UPDATE_READ, _ IN_TREE) : stop(EVENT_DUPLICATE);
            (NORM, _, _, _, _, _, _ IN_TREE) : stop(EVENT_ACCEPTED);
#ifndef NODE
            (STATUS, _, _, 0, _, _, _ IN_TREE) : answer(ANSWER, TYPE_STATUS, FLAG_ANSWER, EVENT_STATUS, NOTHING);
            (STATUS, _, _, 1, _, _, _ IN_TREE) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_CLOSED, EVENT_STATUS, NOTHING);
#endif
            (OLD_CODES, _, _, _, _, _, _ IN_TREE) : answer_after_payload(TYPE_EPOCH, EVENT_OTHER_EPOCH);
            (OLD_HEADER, _, _, _, _, _, _ IN_TREE) : answer(ANSWER, TYPE_EPOCH, OWN_FLAGS, EVENT_OTHER_EPOCH, NOTHING);
#ifndef NODE
            (NORM_STATUS, _, _, 0, _, _, _ IN_TREE) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_NORM, EVENT_STATUS, NOTHING);
            (NORM_STATUS, _, _, 1, _, _, _ IN_TREE) :
                answer(ANSWER, TYPE_STATUS, FLAG_ANSWER | FLAG_NORM | FLAG_CLOSED, EVENT_STATUS, NOTHING);
#endif
#ifdef ROLE
            (DOWN_RESULT, _, _, 1, _, _, _, _, _, 0) : pass_on(MULTICAST);
            (DOWN_RESULT, _, _, 1, _, _, _, _, _, _) : pass_on(ANSWER);
            (DOWN_RESULT, _, _, _, _, _, _, _, _, 0) : pass_on_alone(MULTICAST);
            (DOWN_RESULT, _, _, _, _, _, _, _, _, _) : pass_on_alone(ANSWER);
            (DOWN_NOTICE, _, _, _, _, _, _, _, _, 0) : pass_on_alone(MULTICAST);
            (DOWN_NOTICE, _, _, _, _, _, _, _, _, _) : pass_on_alone(ANSWER);
#endif
#ifdef NODE
            (QUESTION, 1, _, _, _, _, _, _, _, _) :
                answer(ANSWER, TYPE_STRAGGLER, FLAG_PATH, EVENT_STRAGGLER, NOTHING);
            (QUESTION, _, _, 1, _, _, _, 1, _, _) : collect_first(0);
            (QUESTION, _, _, 1, _, _, _, 0, _, _) : collect_first_of_result(0);
            (QUESTION, _, _, _, _, _, _, 1, _, _) : ask_parent(FLAG_PATH);
            (QUESTION, _, _, _, _, _, _, _, _, _) : stop(EVENT_DUPLICATE);
            (NORM_QUESTION, 1, _, _, _, _, _, _, _, _) :
                answer(ANSWER, TYPE_STRAGGLER, FLAG_PATH, EVENT_STRAGGLER, NOTHING);
            (NORM_QUESTION, _, _, 1, _, _, _, 1, _, _) : send_norm_up_again();
            (NORM_QUESTION, _, _, 1, _, _, _, 0, _, _) :
                answer(ANSWER, TYPE_NORM_RESULT, FLAG_PATH, EVENT_LATE, NOTHING);
            (NORM_QUESTION, _, _, _, _, _, _, 1, 1, _) : ask_parent(FLAG_PATH | FLAG_NORM);
            (NORM_QUESTION, _, _, _, _, _, _, _, _, _) : stop(EVENT_DUPLICATE);
#endif
        }
        size = SIZE(32, 64);
    }

    action first_arrival() {
        hdr.recirculation.setValid();
        hdr.recirculation.ingress_port = intrinsic.ingress_port;
#ifndef ROLE
        hdr.recirculation.receiver = hdr.agg.worker;
        hdr.recirculation.count = 0;
#endif
        hdr.recirculation.skip = 0;
        hdr.recirculation.elsewhere = 0;
        hdr.recirculation.collecting = 0;
        hdr.recirculation.closing = 0;
        hdr.recirculation.emptied = 0;
#ifdef NODE
        SUMMED(low) = 0;
        SUMMED(high) = 0;
#endif
    }

#ifdef ROLE
    action note_sender() { hdr.recirculation.receiver = hdr.agg.worker; }
#endif

    apply {
#ifndef NODE
        hdr.sums.setValid();
#endif
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
#ifdef ROLE
            if (meta.has_path == 1) {
                parents.apply();
            } else {
                members.apply();
                if (meta.again == 0) {
                    note_sender();
                }
            }
#else
            members.apply();
#endif
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
#if defined LEAF
                hdr.path.setValid();
#elif defined NODE
                hdr.sums.setValid();
#endif
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
#ifdef ROLE
                if (meta.verdict == UP || meta.from_parent == 1) {
                    uplinks.apply();
                }
                if (meta.verdict == UP) {
                    if (meta.pushes == 1) {
                        pushes.apply();
                    }
                    hdr.agg.worker = meta.number;
                    hdr.recirculation.receiver = meta.above;
                } else if (meta.from_parent == 1 && meta.parent != hdr.recirculation.ingress_port) {
                    meta.verdict = DROP;        // it is the parent of other slots
                    meta.event = EVENT_BAD_SLOT;
                }
#endif
#ifdef LEAF
                if (meta.has_path == 0) {
                    hdr.path.setInvalid();
                }
#endif
                if (meta.finished == 1) {
                    events.count(hdr.agg.job ++ meta.event);
                }
                if (meta.completion != 0) {
                    completions.count(hdr.agg.job ++ meta.completion);
                }
#ifndef NODE
                hdr.codes.setInvalid();
#endif
            }
        }

#ifdef NODE
#define BLOCK_APPLY(n) block##n.apply(meta.cell, meta.operation, meta.update, hdr.sums.block##n);
#else
#define BLOCK_APPLY(n) block##n.apply(hdr.agg.job, meta.looks_up, hdr.codes.block##n, meta.cell, meta.operation, meta.update, hdr.sums.block##n);
#endif
        EACH_BLOCK(BLOCK_APPLY)

        // The sums of a pass go with the packet from the last pass on, if it is closed.
#ifdef NODE
        if (meta.local == 1 && (hdr.recirculation.collecting == 0 || hdr.recirculation.emptied == 1)) {
#else
        if (hdr.recirculation.collecting == 0 || hdr.recirculation.emptied == 1) {
#endif
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
#ifdef ROLE
            } else if (meta.verdict == UP) {
                for_tm.ucast_egress_port = meta.parent;
#endif
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
