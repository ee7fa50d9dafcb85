// Widths of the chip's numbers, the constants that programs name, and enumerations.

#ifndef _GRADPLANE_TOFINO_NUMBERS_P4_
#define _GRADPLANE_TOFINO_NUMBERS_P4_

#include <core.p4>

// The compiler and its version, as p4c's back end for the chip defines them.
#ifndef __p4c__
#define __p4c__ 1
#define __p4c_major__ 9
#define __p4c_minor__ 13
#define __p4c_patchlevel__ 4
#define __p4c_version__ "9.13.4"
#endif
#define PACK_VERSION(a, b, c) (((a) << 24) + ((b) << 12) + (c))
#define COMPILER_VERSION PACK_VERSION(__p4c_major__, __p4c_minor__, __p4c_patchlevel__)

#define PORT_ID_WIDTH 9
#define MULTICAST_GROUP_ID_WIDTH 16
#define REPLICATION_ID_WIDTH 16
#define L1_EXCLUSION_ID_WIDTH 16
#define L2_EXCLUSION_ID_WIDTH 9
#define RESUBMIT_TYPE_WIDTH 3
#define DIGEST_TYPE_WIDTH 3
#if __TARGET_TOFINO__ == 2
#ifndef __TOFINO2_VARIANT__
#define __TOFINO2_VARIANT__ 1
#endif
#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8
#else
#define QUEUE_ID_WIDTH 5
#define MIRROR_TYPE_WIDTH 3
#define MIRROR_ID_WIDTH 10
#endif

typedef bit<PORT_ID_WIDTH> PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<REPLICATION_ID_WIDTH> ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH> L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH> L2ExclusionId_t;
typedef bit<QUEUE_ID_WIDTH> QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH> MirrorType_t;
typedef bit<MIRROR_ID_WIDTH> MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH> ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH> DigestType_t;
typedef error ParserError_t;
#if __TARGET_TOFINO__ == 2
typedef MirrorType_t CloneId_t;
#endif

// Bits between the intrinsic metadata and the packet in ingress: what the control plane keeps for
// the port, or the header of a resubmitted packet.
#if __TARGET_TOFINO__ == 2
const bit<32> PORT_METADATA_SIZE = 32w192;
#else
const bit<32> PORT_METADATA_SIZE = 32w64;
#endif

// A port is seven bits below the number of its pipe.
#define DEVPORT_PIPE_MASK 0x180
#define DEVPORT_PORT_MASK 0x7f
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT(port) (port)[6:0]

match_kind {
    range,
    selector,               // input of an action selector's hash
#if __TARGET_TOFINO__ == 2
    dleft_hash,
#endif
    atcam_partition_index   // chooses the part of an algorithmic TCAM
}

error {
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

// Flags in the field parser_err.
const bit<16> PARSER_ERROR_OK = 0x0000;
const bit<16> PARSER_ERROR_NO_MATCH = 0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR = 0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE = 0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW = 0x0010;
const bit<16> PARSER_ERROR_SRC_EXT = 0x0020;
#if __TARGET_TOFINO__ != 2
const bit<16> PARSER_ERROR_DST_CONT = 0x0040;
#endif
const bit<16> PARSER_ERROR_PHV_OWNER = 0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE = 0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE = 0x0400;
const bit<16> PARSER_ERROR_FCS = 0x0800;
#if __TARGET_TOFINO__ == 2
const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;
#endif

enum CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }

enum MeterType_t { PACKETS, BYTES }

enum bit<8> MeterColor_t { GREEN = 0, YELLOW = 1, RED = 3 }

enum SelectorMode_t { FAIR, RESILIENT }

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8, XOR16, XOR32,
    CRC8, CRC16, CRC32, CRC64,
    CUSTOM      // by a CRCPolynomial
}

// What a MathUnit computes from x.
enum MathOp_t { MUL, SQR, SQRT, DIV, RSQR, RSQRT }

#endif
