// Headers of the wire format: Ethernet, IPv4, UDP and the aggregation header.

#ifndef GRADPLANE_HEADERS_P4
#define GRADPLANE_HEADERS_P4

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP = 17;
const bit<16> AGGREGATION_PORT = 18256;

const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> AGGREGATION_BYTES = 30;
const bit<16> PATH_BYTES = 8;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

// What the checksum of `hdr.ipv4` covers.
#define IPV4_FIELDS \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, \
    hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, \
    hdr.ipv4.dst_addr

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// Types of aggregation packets.
const bit<4> TYPE_NORM = 1;
const bit<4> TYPE_NORM_RESULT = 2;
const bit<4> TYPE_CODES = 3;
const bit<4> TYPE_SUMS = 4;
const bit<4> TYPE_STRAGGLER = 5;
const bit<4> TYPE_PARTIAL_SUMS = 6;
const bit<4> TYPE_STATUS = 7;
const bit<4> TYPE_EPOCH = 8;    // to a sender of another epoch: the job's
const bit<4> TYPE_QUESTION = 9; // to a parent: the result, if it is there

const bit<4> AGGREGATION_VERSION = 2;

// Flags. The first two: of status packets.
const bit<8> FLAG_ANSWER = 1;
const bit<8> FLAG_CLOSED = 2;
const bit<8> FLAG_NORM = 4;     // of the slot's norm exchange instead of its sums
const bit<8> FLAG_PATH = 8;     // there is a path: behind the header, to a parent in its bitmap
const bit<8> FLAG_UNCOUNTED = 16;   // of a result: the sums of the receiver's rack are not in it
const bit<8> FLAG_DIRECT = 32;  // of codes: sent again, so that no switch may add them
const bit<8> FLAG_BARE = 128;   // of a result: without its sums, which another worker needs
const bit<8> FLAG_REPEATS = 64; // codes or sums are those of the first eight bytes of codes, repeated

header aggregation_t {
    bit<4>  version;
    bit<4>  type;
    bit<8>  flags;
    bit<8>  job;
    bit<8>  worker;      // sender; 0 in results
    bit<16> slot;
    bit<8>  pass;
    bit<8>  sum_bits;
    bit<32> round;
    bit<64> bitmap;      // in results: the children summed by the switch that answers; see FLAG_PATH
                         // and, of codes, FLAG_REPEATS
    bit<32> norm;        // float32 bits
    bit<16> count;       // in results: how many workers were summed; of codes: the child of their
                         // switch that alone needs the sums, plus 1, or another number; 0: all do
    bit<8>  epoch;       // of the job, from 1 to 255
    bit<8>  code_bits;   // of a code in a packet
    bit<16> checksum;    // of this header and the path, as IPv4's
}

// What switches of one job say to each other: the numbers of children plus 1 on the way down, the
// next one in the low bits. At a worker: the bitmap of its own switch.
header path_t { bit<64> hops; }

#endif
