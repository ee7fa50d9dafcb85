// An aggregation block with v1model's registers.

#ifndef GRADPLANE_V1MODEL_BLOCK_P4
#define GRADPLANE_V1MODEL_BLOCK_P4

#include "blocks.p4"

// Four lanes: each code is looked up for its job, and the four values are added to the sums of the
// cell in one access; with `adds`, the sums of a lower switch are, as they are. The controller keeps
// granularity * workers below 2^SUM_BITS, so no lane carries into the next.
control Block(in bit<8> job, in indices_t codes, in bit<32> cell, in update_t update, in bit<1> adds,
              inout lanes_t total) {
    register<lanes_t>(CELLS) sums;
    sum_t value0 = 0;
    sum_t value1 = 0;
    sum_t value2 = 0;
    sum_t value3 = 0;
    lanes_t given = total;

    action set0(sum_t value) { value0 = value; }
    action set1(sum_t value) { value1 = value; }
    action set2(sum_t value) { value2 = value; }
    action set3(sum_t value) { value3 = value; }

    table lookup0 {
        key = { job : exact @name("job"); codes[4 * CODE_BITS - 1:3 * CODE_BITS] : exact @name("index"); }
        actions = { set0; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    table lookup1 {
        key = { job : exact @name("job"); codes[3 * CODE_BITS - 1:2 * CODE_BITS] : exact @name("index"); }
        actions = { set1; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    table lookup2 {
        key = { job : exact @name("job"); codes[2 * CODE_BITS - 1:CODE_BITS] : exact @name("index"); }
        actions = { set2; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    table lookup3 {
        key = { job : exact @name("job"); codes[CODE_BITS - 1:0] : exact @name("index"); }
        actions = { set3; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        if (update != UPDATE_NONE && adds == 0) {
            lookup0.apply();
            lookup1.apply();
            lookup2.apply();
            lookup3.apply();
            given = value0 ++ value1 ++ value2 ++ value3;
        }
        sums.read(total, cell);
        if (update == UPDATE_START) {
            total = given;
            sums.write(cell, total);
        } else if (update == UPDATE_ADD) {
            total = total + given;
            sums.write(cell, total);
        }
#ifdef SHARES_SLOTS
        else if (update == UPDATE_SWAP) {
            sums.write(cell, given);
        }
#endif
    }
}

#endif
