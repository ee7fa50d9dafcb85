// What tos_compress.p4 and tos_compress_tna.p4 agree on: sizes, marks, the shim, and why a packet passes.

#ifndef GRADPLANE_MARKED_PACKETS_P4
#define GRADPLANE_MARKED_PACKETS_P4

// The largest payload in an MTU of 1500.
#define MAX_WORDS 368

const bit<16> MAX_PAYLOAD_BYTES = MAX_WORDS * 4;
const bit<16> MESSAGE_BYTES = 16;

header shim_t {
    bit<16> count;      // of the values
    bit<8>  bound;
    bit<8>  flags;
}

const bit<16> SHIM_BYTES = 4;
const bit<8>  FLAG_LITTLE_ENDIAN = 1;   // the hosts' values
const bit<8>  FLAG_MESSAGE = 2;         // a message header follows the shim

// ToS without the ECN bits.
const bit<6> MARKED = 0x28 >> 2;
const bit<6> COMPRESSED = 0x2C >> 2;

// The reasons why a marked packet is not compressed: indexes of counter `passed`.
typedef bit<4> reason_t;
const reason_t LOCAL = 0;           // it leaves to a host
const reason_t NOT_UDP = 1;
const reason_t OPTIONS = 2;
const reason_t FRAGMENT = 3;
const reason_t BAD_LENGTH = 4;      // the lengths of IP, UDP and the frame contradict each other
const reason_t NOT_WORDS = 5;       // not a multiple of four bytes
const reason_t NO_VALUES = 6;
const reason_t TOO_LONG = 7;
const reason_t BAD_CHECKSUM = 8;    // of the IP header
const reason_t NO_BOUND = 9;
const reason_t UNKNOWN_BOUND = 10;
const reason_t UNKNOWN_FORMAT = 11;
const reason_t NOT_SHORTER = 12;

const bit<16> STREAM_PORT = 18257;

#endif
