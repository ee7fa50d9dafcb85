// What the aggregation programs for v1model share: the cable, ports, verdicts, and the block.

#ifndef GRADPLANE_V1MODEL_AGGREGATION_P4
#define GRADPLANE_V1MODEL_AGGREGATION_P4

#include "headers.p4"
#include "aggregation_events.p4"
#include "ecn.p4"
#include "v1model_block.p4"

// A packet in BMv2 may grow by 512 bytes until it is sent. One whose sums need more leaves before
// every other pass, through a port that a cable connects with another, and has new room behind it.
#ifdef __TARGET_BMV2__
#if SUMS_BYTES - CODES_BYTES > 512
#define HAS_CABLE
#endif
#endif

// Hosts, and switches with addresses of their own.
#ifndef ROUTES
#define ROUTES 1024
#endif

const bit<9> CABLE_OUT = 508;
const bit<9> CABLE_IN = 509;

// v1model's instance types, and the port number that stands for recirculation.
const bit<32> INSTANCE_REPLICATION = 5;
const bit<32> INSTANCE_RECIRCULATED = 4;
const bit<9>  RECIRCULATION_PORT = 510;

// What the checksum of an aggregation header covers, beside the path.
#define HEADER_FIELDS \
    hdr.agg.version, hdr.agg.type, hdr.agg.flags, hdr.agg.job, hdr.agg.worker, hdr.agg.slot, \
    hdr.agg.pass, hdr.agg.sum_bits, hdr.agg.round, hdr.agg.bitmap, hdr.agg.norm, hdr.agg.count, \
    hdr.agg.epoch, hdr.agg.code_bits

// The verdict on the packet.
typedef bit<3> verdict_t;
const verdict_t DROP = 0;
const verdict_t FORWARD = 1;
const verdict_t RECIRCULATE = 2;
const verdict_t ANSWER = 3;         // to one worker, or child
const verdict_t MULTICAST = 4;      // to all of them
const verdict_t UP = 5;             // to the parent, or to a server

#endif
