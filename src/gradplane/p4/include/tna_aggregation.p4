// What the aggregation programs for Tofino share: sizes, ports, verdicts, operations and blocks.

#ifndef GRADPLANE_TNA_AGGREGATION_P4
#define GRADPLANE_TNA_AGGREGATION_P4

#include "headers.p4"
#include "aggregation_events.p4"

// A stateful ALU adds to a number of 32 bits, and a chip's containers hold 32 of them beside the
// headers. So a block has four lanes of 8 bits, two of 16, or one of 32, and a packet eight passes.
#define LANES (32 / SUM_BITS)

#include "blocks.p4"

#if SLOTS == 2
#define SLOT_BITS 1
#elif SLOTS == 4
#define SLOT_BITS 2
#elif SLOTS == 8
#define SLOT_BITS 3
#elif SLOTS == 16
#define SLOT_BITS 4
#elif SLOTS == 32
#define SLOT_BITS 5
#elif SLOTS == 64
#define SLOT_BITS 6
#elif SLOTS == 128
#define SLOT_BITS 7
#elif SLOTS == 256
#define SLOT_BITS 8
#elif SLOTS == 512
#define SLOT_BITS 9
#elif SLOTS == 1024
#define SLOT_BITS 10
#elif SLOTS == 2048
#define SLOT_BITS 11
#elif SLOTS == 4096
#define SLOT_BITS 12
#else
#error "SLOTS must be a power of two from 2 to 4096"
#endif

#define PASS_BITS 3
#define LAST_PASS (PASSES - 1)

typedef bit<(SLOT_BITS + PASS_BITS)> cell_t;        // slot, pass

// The pipe that has the registers, as the high bits of its ports, and its recirculation port.
const bit<2> AGGREGATING_PIPE = 0;
const PortId_t RECIRCULATION_PORT = 6;
#define OF_AGGREGATING_PIPE 9w0 &&& 9w0x180

// The verdict on the packet.
typedef bit<3> verdict_t;
const verdict_t DROP = 0;
const verdict_t FORWARD = 1;
const verdict_t RECIRCULATE = 2;
const verdict_t ANSWER = 3;         // to one worker
const verdict_t MULTICAST = 4;      // to all workers of the job
const verdict_t UP = 5;             // to the parent, or to a server

// The operation that a packet asks for.
#ifdef ROLE
typedef bit<4> operation_t;
#else
typedef bit<3> operation_t;
#endif
const operation_t REFUSED = 0;
const operation_t CODES = 1;
const operation_t COLLECT = 2;
#ifdef ROLE
const operation_t QUESTION = 8;
#endif

#define HEADER_ONLY (IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES)

// One of the combinations of a relation of the packet to a cell, which has one bit for each.
#define IN(relation) 0 &&& ~relation

struct workers_t { bit<32> low; bit<32> high; }

#include "tna_block.p4"

#endif
