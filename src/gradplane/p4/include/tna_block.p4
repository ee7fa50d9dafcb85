// An aggregation block for Tofino: its lookups, and one access of a stateful ALU.

#ifndef GRADPLANE_TNA_BLOCK_P4
#define GRADPLANE_TNA_BLOCK_P4

// A lookup takes one code, or two at once: for 8-bit sums 64 tables instead of 128, which is what the
// stages of a chip have hash units for, but with codes of 4 bits 256 entries for a job in each
// instead of 16.
#ifndef CODES_A_LOOKUP
#define CODES_A_LOOKUP 1
#endif

#if CODES_A_LOOKUP == 2
#if LANES == 1
#error "a block of 32-bit sums has one code: CODES_A_LOOKUP must be 1"
#endif
#if CODE_BITS == 8
#error "two codes of 8 bits are 65536 pairs: CODES_A_LOOKUP must be 1"
#endif
#define INDEX_NAME "pair"
#elif CODES_A_LOOKUP == 1
#define INDEX_NAME "index"
#else
#error "CODES_A_LOOKUP must be 1 or 2"
#endif

// Lookup entries of all jobs together, in each of the tables.
#ifndef LOOKUPS
#define LOOKUPS 4096
#endif

#define LOOKUPS_A_BLOCK (LANES / CODES_A_LOOKUP)
#define INDEX_BITS (CODES_A_LOOKUP * CODE_BITS)
#define VALUE_BITS (CODES_A_LOOKUP * SUM_BITS)

#if LOOKUPS_A_BLOCK == 4
#define EACH_LOOKUP(F) F(0) F(1) F(2) F(3)
#elif LOOKUPS_A_BLOCK == 2
#define EACH_LOOKUP(F) F(0) F(1)
#else
#define EACH_LOOKUP(F) F(0)
#endif

// Beside the updates of blocks.p4, where UPDATE_NONE does not access the sums at all: only read.
const update_t UPDATE_READ = 3;

// Each code is looked up for its job, and the values are added to the sums of the cell in one access.
// The controller keeps granularity * workers below 2^SUM_BITS, so no lane carries into the next.
//
// The lookups do not wait for the update, of which the chip knows late: they share the stages of
// what computes it. `lanes` takes up the values, and leaves with the sums.
#ifdef NODE
// A node's lanes come with the packet.
control Block(in cell_t cell, in operation_t operation, in update_t update, inout lanes_t lanes) {
#else
control Block(in bit<8> job, in bit<1> looks_up, in indices_t codes, in cell_t cell,
              in operation_t operation, in update_t update, inout lanes_t lanes) {
#endif
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

#ifndef NODE
#define LOOKUP(n) \
    action set##n(bit<VALUE_BITS> value) { \
        lanes[31 - n * VALUE_BITS:32 - (n + 1) * VALUE_BITS] = value; \
    } \
    table lookup##n { \
        key = { \
            job : exact @name("job"); \
            codes[(LOOKUPS_A_BLOCK - n) * INDEX_BITS - 1:(LOOKUPS_A_BLOCK - n - 1) * INDEX_BITS] : exact @name(INDEX_NAME); \
        } \
        actions = { set##n; } \
        const default_action = set##n(0); \
        size = LOOKUPS; \
    }
    EACH_LOOKUP(LOOKUP)
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
#ifdef NODE
            (QUESTION, UPDATE_READ) : read_sums();
#endif
        }
#ifdef NODE
        size = 8;
#else
        size = 4;
#endif
    }

    apply {
#ifndef NODE
        if (looks_up == 1) {
#define LOOKUP_APPLY(n) lookup##n.apply();
            EACH_LOOKUP(LOOKUP_APPLY)
        }
#endif
        access.apply();
    }
}

#endif
