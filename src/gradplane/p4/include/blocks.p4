// The sizes of the 32 aggregation blocks of a pass, and the headers of their lanes. Each architecture
// has the block itself in a file of its own: its registers differ.
//
// SUM_BITS 8: 1024 codes a packet; 16: 512; 32: 256, of CODE_BITS each. A result has 1024 bytes. A
// block has four lanes, so that a pass handles 128 codes, unless LANES says another number.

#ifndef GRADPLANE_BLOCKS_P4
#define GRADPLANE_BLOCKS_P4

#ifndef SUM_BITS
#define SUM_BITS 8
#endif

#ifndef CODE_BITS
#define CODE_BITS 4
#endif

#ifndef SLOTS
#define SLOTS 256
#endif

#if SUM_BITS != 8 && SUM_BITS != 16 && SUM_BITS != 32
#error "SUM_BITS must be 8, 16 or 32"
#endif

#ifndef LANES
#define LANES 4
#endif

#if CODE_BITS != 1 && CODE_BITS != 2 && CODE_BITS != 4 && CODE_BITS != 8
#error "CODE_BITS must be 1, 2, 4 or 8"
#endif

#define SUMS_BYTES 1024
#define PASS_SUM_BITS (32 * LANES * SUM_BITS)
#define PASSES (8 * SUMS_BYTES / PASS_SUM_BITS)
#define CELLS (SLOTS * PASSES)
#define PASS_CODES_BYTES (4 * LANES * CODE_BITS)
#define CODES_BYTES (PASSES * PASS_CODES_BYTES)

#define EACH_BLOCK(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) \
    F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)

typedef bit<SUM_BITS> sum_t;
typedef bit<(LANES * SUM_BITS)> lanes_t;    // a block's sums, the first in the high bits
typedef bit<(LANES * CODE_BITS)> indices_t; // its codes, likewise

#define CODES_FIELD(n) indices_t block##n;
header codes_t { EACH_BLOCK(CODES_FIELD) }

#define SUMS_FIELD(n) lanes_t block##n;
header sums_t { EACH_BLOCK(SUMS_FIELD) }

// The sums of an earlier pass, carried through the later ones.
header done_t { bit<PASS_SUM_BITS> sums; }

// The update that a packet makes to the cell (slot and pass) it has reached.
typedef bit<2> update_t;
const update_t UPDATE_NONE = 0;     // only read
const update_t UPDATE_START = 1;    // the first of a round: overwrite
const update_t UPDATE_ADD = 2;
const update_t UPDATE_SWAP = 3;     // overwrite, and return what was there: with SHARES_SLOTS

#endif
