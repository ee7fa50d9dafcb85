// An aggregation block for Tofino: its lookups, and one access of a stateful ALU.

#ifndef GRADPLANE_TNA_BLOCK_P4
#define GRADPLANE_TNA_BLOCK_P4

#include "blocks.p4"

// A stateful ALU adds two numbers of 32 bits at most: four lanes of 16.
#if SUM_BITS == 32
#error "SUM_BITS must be 8 or 16 on a Tofino, whose ALUs add no four sums of 32 bits"
#endif

// A lookup takes one code, or two at once: 64 tables instead of 128, which is what the stages of a
// chip have hash units for, but with codes of 4 bits 256 entries for a job in each instead of 16.
#ifndef CODES_A_LOOKUP
#define CODES_A_LOOKUP 1
#endif

#if CODES_A_LOOKUP == 2
#if CODE_BITS == 8
#error "two codes of 8 bits are 65536 pairs: CODES_A_LOOKUP must be 1"
#endif
#endif

// Beside the updates of blocks.p4, where UPDATE_NONE does not access the sums at all: only read.
const update_t UPDATE_READ = 3;

// Four lanes: each code is looked up for its job, and the four values are added to the sums of the
// cell in one access. The controller keeps granularity * workers below 2^SUM_BITS, so no lane
// carries into the next.
//
// The lookups do not wait for the update, of which the chip knows late: they share the stages of
// what computes it. `lanes` takes up the values, and leaves with the sums.
control Block(in bit<8> job, in bit<1> looks_up, in codes4_t codes, in cell_t cell,
              in operation_t operation, in update_t update, inout lanes_t lanes) {
    Register<lanes_t, cell_t>(CELLS) sums;

    RegisterAction<lanes_t, cell_t, lanes_t>(sums) start = {
        void apply(inout lanes_t sum, out lanes_t result) {
            sum = lanes;
            result = sum;
        }
    };
    RegisterAction<lanes_t, cell_t, lanes_t>(sums) add = {
        void apply(inout lanes_t sum, out lanes_t result) {
            sum = sum + lanes;
            result = sum;
        }
    };
    RegisterAction<lanes_t, cell_t, lanes_t>(sums) read = {
        void apply(inout lanes_t sum, out lanes_t result) { result = sum; }
    };

#if CODES_A_LOOKUP == 2
    action set0(bit<(2 * SUM_BITS)> value) { lanes[4 * SUM_BITS - 1:2 * SUM_BITS] = value; }
    action set1(bit<(2 * SUM_BITS)> value) { lanes[2 * SUM_BITS - 1:0] = value; }

    table lookup0 {
        key = { job : exact @name("job"); codes[4 * CODE_BITS - 1:2 * CODE_BITS] : exact @name("index"); }
        actions = { set0; }
        const default_action = set0(0);
        size = LOOKUPS;
    }
    table lookup1 {
        key = { job : exact @name("job"); codes[2 * CODE_BITS - 1:0] : exact @name("index"); }
        actions = { set1; }
        const default_action = set1(0);
        size = LOOKUPS;
    }

#else
    action set0(sum_t value) { lanes[4 * SUM_BITS - 1:3 * SUM_BITS] = value; }
    action set1(sum_t value) { lanes[3 * SUM_BITS - 1:2 * SUM_BITS] = value; }
    action set2(sum_t value) { lanes[2 * SUM_BITS - 1:SUM_BITS] = value; }
    action set3(sum_t value) { lanes[SUM_BITS - 1:0] = value; }

    table lookup0 {
        key = { job : exact @name("job"); codes[4 * CODE_BITS - 1:3 * CODE_BITS] : exact @name("index"); }
        actions = { set0; }
        const default_action = set0(0);
        size = LOOKUPS;
    }
    table lookup1 {
        key = { job : exact @name("job"); codes[3 * CODE_BITS - 1:2 * CODE_BITS] : exact @name("index"); }
        actions = { set1; }
        const default_action = set1(0);
        size = LOOKUPS;
    }
    table lookup2 {
        key = { job : exact @name("job"); codes[2 * CODE_BITS - 1:CODE_BITS] : exact @name("index"); }
        actions = { set2; }
        const default_action = set2(0);
        size = LOOKUPS;
    }
    table lookup3 {
        key = { job : exact @name("job"); codes[CODE_BITS - 1:0] : exact @name("index"); }
        actions = { set3; }
        const default_action = set3(0);
        size = LOOKUPS;
    }
#endif

    action start_sums() { lanes = start.execute(cell); }
    action add_to_sums() { lanes = add.execute(cell); }
    action read_sums() { lanes = read.execute(cell); }

    @hidden table access {
        key = { operation : exact; update : exact; }
        actions = { start_sums; add_to_sums; read_sums; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (CODES, UPDATE_START) : start_sums();
            (CODES, UPDATE_ADD) : add_to_sums();
            (CODES, UPDATE_READ) : read_sums();
            (COLLECT, UPDATE_READ) : read_sums();
        }
        size = 4;
    }

    apply {
        if (looks_up == 1) {
            lookup0.apply();
            lookup1.apply();
#if CODES_A_LOOKUP == 1
            lookup2.apply();
            lookup3.apply();
#endif
        }
        access.apply();
    }
}

#endif
