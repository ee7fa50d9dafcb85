// The Portable NIC Architecture: every name, type and signature that programs written for it rely on.
//
// p4c has two versions of it, and so has this file: that of p4c's pna.p4, and where PNA_WITHOUT_DIRECTIONS
// is defined, as bmv2/pna.p4 does, that of the specification's version 0.7.

#ifndef _PNA_P4_
#define _PNA_P4_

#include <core.p4>

match_kind {
    range,
    optional,
    selector    // no key: input of an action selector's hash
}

// -- numbers: of plain bits (Uint), and as types that P4Runtime translates --------------------------

typedef bit<32> PortIdUint_t;
typedef bit<32> InterfaceIdUint_t;
typedef bit<32> MulticastGroupUint_t;
typedef bit<16> MirrorSessionIdUint_t;
typedef bit<8>  MirrorSlotIdUint_t;
typedef bit<8>  ClassOfServiceUint_t;
typedef bit<16> PacketLengthUint_t;
typedef bit<16> MulticastInstanceUint_t;
typedef bit<64> TimestampUint_t;
typedef bit<32> FlowIdUint_t;
typedef bit<8>  ExpireTimeProfileIdUint_t;
typedef bit<3>  PassNumberUint_t;
typedef bit<32> SecurityAssocIdUint_t;

@p4runtime_translation("p4.org/pna/v1/PortId_t", 32)
type PortIdUint_t PortId_t;
@p4runtime_translation("p4.org/pna/v1/InterfaceId_t", 32)
type InterfaceIdUint_t InterfaceId_t;
@p4runtime_translation("p4.org/pna/v1/MulticastGroup_t", 32)
type MulticastGroupUint_t MulticastGroup_t;
@p4runtime_translation("p4.org/pna/v1/MirrorSessionId_t", 16)
type MirrorSessionIdUint_t MirrorSessionId_t;
@p4runtime_translation("p4.org/pna/v1/MirrorSlotId_t", 8)
type MirrorSlotIdUint_t MirrorSlotId_t;
@p4runtime_translation("p4.org/pna/v1/ClassOfService_t", 8)
type ClassOfServiceUint_t ClassOfService_t;
@p4runtime_translation("p4.org/pna/v1/PacketLength_t", 16)
type PacketLengthUint_t PacketLength_t;
@p4runtime_translation("p4.org/pna/v1/MulticastInstance_t", 16)
type MulticastInstanceUint_t MulticastInstance_t;
@p4runtime_translation("p4.org/pna/v1/Timestamp_t", 64)
type TimestampUint_t Timestamp_t;
@p4runtime_translation("p4.org/pna/v1/FlowId_t", 32)
type FlowIdUint_t FlowId_t;
@p4runtime_translation("p4.org/pna/v1/ExpireTimeProfileId_t", 8)
type ExpireTimeProfileIdUint_t ExpireTimeProfileId_t;
@p4runtime_translation("p4.org/pna/v1/PassNumber_t", 8)
type PassNumberUint_t PassNumber_t;
@p4runtime_translation("p4.org/pna/v1/SecurityAssocId_t", 64)
type SecurityAssocIdUint_t SecurityAssocId_t;

// Those of headers, between a NIC and its P4Runtime server.
typedef bit<32> PortIdInHeaderUint_t;
typedef bit<32> InterfaceIdInHeaderUint_t;
typedef bit<32> MulticastGroupInHeaderUint_t;
typedef bit<16> MirrorSessionIdInHeaderUint_t;
typedef bit<8>  MirrorSlotIdInHeaderUint_t;
typedef bit<8>  ClassOfServiceInHeaderUint_t;
typedef bit<16> PacketLengthInHeaderUint_t;
typedef bit<16> MulticastInstanceInHeaderUint_t;
typedef bit<64> TimestampInHeaderUint_t;
typedef bit<32> FlowIdInHeaderUint_t;
typedef bit<8>  ExpireTimeProfileIdInHeaderUint_t;
typedef bit<8>  PassNumberInHeaderUint_t;
typedef bit<32> SecurityAssocIdInHeaderUint_t;

@p4runtime_translation("p4.org/pna/v1/PortIdInHeader_t", 32)
type PortIdInHeaderUint_t PortIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/InterfaceIdInHeader_t", 32)
type InterfaceIdInHeaderUint_t InterfaceIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/MulticastGroupInHeader_t", 32)
type MulticastGroupInHeaderUint_t MulticastGroupInHeader_t;
@p4runtime_translation("p4.org/pna/v1/MirrorSessionIdInHeader_t", 16)
type MirrorSessionIdInHeaderUint_t MirrorSessionIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/MirrorSlotIdInHeader_t", 8)
type MirrorSlotIdInHeaderUint_t MirrorSlotIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/ClassOfServiceInHeader_t", 8)
type ClassOfServiceInHeaderUint_t ClassOfServiceInHeader_t;
@p4runtime_translation("p4.org/pna/v1/PacketLengthInHeader_t", 16)
type PacketLengthInHeaderUint_t PacketLengthInHeader_t;
@p4runtime_translation("p4.org/pna/v1/MulticastInstanceInHeader_t", 16)
type MulticastInstanceInHeaderUint_t MulticastInstanceInHeader_t;
@p4runtime_translation("p4.org/pna/v1/TimestampInHeader_t", 64)
type TimestampInHeaderUint_t TimestampInHeader_t;
@p4runtime_translation("p4.org/pna/v1/FlowIdInHeader_t", 32)
type FlowIdInHeaderUint_t FlowIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/ExpireTimeProfileIdInHeader_t", 8)
type ExpireTimeProfileIdInHeaderUint_t ExpireTimeProfileIdInHeader_t;
@p4runtime_translation("p4.org/pna/v1/PassNumberInHeader_t", 8)
type PassNumberInHeaderUint_t PassNumberInHeader_t;
@p4runtime_translation("p4.org/pna/v1/SecurityAssocIdInHeader_t", 64)
type SecurityAssocIdInHeaderUint_t SecurityAssocIdInHeader_t;

#define PNA_IN_HEADER(NAME) \
    NAME##_t pna_##NAME##_header_to_int(in NAME##InHeader_t x) { \
        return (NAME##_t) (NAME##Uint_t) (NAME##InHeaderUint_t) x; \
    } \
    NAME##InHeader_t pna_##NAME##_int_to_header(in NAME##_t x) { \
        return (NAME##InHeader_t) (NAME##InHeaderUint_t) (NAME##Uint_t) x; \
    }
PNA_IN_HEADER(PortId)
PNA_IN_HEADER(InterfaceId)
PNA_IN_HEADER(MulticastGroup)
PNA_IN_HEADER(MirrorSessionId)
PNA_IN_HEADER(ClassOfService)
PNA_IN_HEADER(PacketLength)
PNA_IN_HEADER(MulticastInstance)
PNA_IN_HEADER(Timestamp)
PNA_IN_HEADER(FlowId)
PNA_IN_HEADER(ExpireTimeProfileId)
PNA_IN_HEADER(PassNumber)

#undef PNA_IN_HEADER

typedef error ParserError_t;

const InterfaceId_t PNA_PORT_CPU = (InterfaceId_t) 0xfffffffd;
const MirrorSessionId_t PNA_MIRROR_SESSION_TO_CPU = (MirrorSessionId_t) 0;

enum PNA_IdleTimeout_t { NO_TIMEOUT, NOTIFY_CONTROL, AUTO_DELETE }

#ifndef PNA_WITHOUT_DIRECTIONS
enum PNA_Direction_t { NET_TO_HOST, HOST_TO_NET }

enum PNA_PacketPath_t {
    FROM_NET_PORT,
    FROM_NET_LOOPEDBACK,
    FROM_NET_RECIRCULATED,
    FROM_HOST,
    FROM_HOST_LOOPEDBACK,
    FROM_HOST_RECIRCULATED
}

struct pna_pre_input_metadata_t {
    PortId_t input_port;
    ParserError_t parser_error;
    PNA_Direction_t direction;
    PassNumber_t pass;
    bool loopedback;
}

struct pna_pre_output_metadata_t {
    bool decrypt;                       // ignored: this switch has no inline accelerator
    SecurityAssocId_t said;
    bit<16> decrypt_start_offset;
}
#else
enum PNA_Source_t { FROM_HOST, FROM_NET }
#endif

// -- metadata -----------------------------------------------------------------------------------

#ifdef PNA_WITHOUT_DIRECTIONS
#define PNA_PASS bool recirculated;             /* never: no extern asks for it */
#else
#define PNA_PASS PNA_Direction_t direction; PassNumber_t pass; bool loopedback;
#endif

struct pna_main_parser_input_metadata_t {
    PNA_PASS
    PortId_t input_port;                // of the network, or the host's vport
}

struct pna_main_input_metadata_t {
    PNA_PASS
    Timestamp_t timestamp;              // in microseconds
    ParserError_t parser_error;
    ClassOfService_t class_of_service;
    PortId_t input_port;
}

#undef PNA_PASS

struct pna_main_output_metadata_t {
    ClassOfService_t class_of_service;
}

// -- where a packet goes: the last call counts; without one it is dropped ----------------------------

extern void drop_packet();
extern void send_to_port(in PortId_t dest_port);

// A copy of the packet as it leaves, to a session's ports; of each slot (0 to 3) the last call counts.
extern void mirror_packet(in MirrorSlotId_t mirror_slot_id,
                          in MirrorSessionId_t mirror_session_id);

// Tables that packets write. A table with add_on_miss = true may have a default action that adds an
// entry for the key which missed: of the action that action_name is, with a struct of its parameters.
typedef bit<1> AddEntryErrorStatus_t;
const AddEntryErrorStatus_t ADD_ENTRY_SUCCESS = 0;
const AddEntryErrorStatus_t ADD_ENTRY_NOT_DONE = 1;

extern AddEntryErrorStatus_t add_entry<T>(string action_name, in T action_params,
                                          in ExpireTimeProfileId_t expire_time_profile_id);
extern AddEntryErrorStatus_t add_entry_if<T>(in bool do_add_entry, string action_name,
                                             in T action_params,
                                             in ExpireTimeProfileId_t expire_time_profile_id);
extern FlowId_t allocate_flow_id();

// Timers of the entry that was hit, in tables with pna_idle_timeout. Where actions of a table call one
// of these, a hit alone does not restart the timer.
extern void set_entry_expire_time(in ExpireTimeProfileId_t expire_time_profile_id);
extern void set_entry_expire_time_if(in bool condition,
                                     in ExpireTimeProfileId_t expire_time_profile_id);
extern void restart_expire_timer();
extern void update_expire_info(in bool update_aging_info, in bool update_expire_time,
                               in ExpireTimeProfileId_t expire_time_profile_id);

#ifdef PNA_WITHOUT_DIRECTIONS
@pure extern bool is_net_port(in PortId_t p);
@pure extern bool is_host_port(in PortId_t p);
@pure extern T SelectByDirection<T>(in bool is_network_port, in T from_net_value, in T from_host_value);
#else
@pure extern T SelectByDirection<T>(in PNA_Direction_t direction, in T n2h_value, in T h2n_value);
#endif

// -- externs ------------------------------------------------------------------------------------

enum PNA_HashAlgorithm_t {
    IDENTITY, CRC32, CRC32_CUSTOM, CRC16, CRC16_CUSTOM, ONES_COMPLEMENT16, TARGET_DEFAULT
}

extern Hash<O> {
    Hash(PNA_HashAlgorithm_t algo);
    @pure O get_hash<D>(in D data);
    // base + hash modulo max.
    @pure O get_hash<T, D>(in T base, in D data, in T max);
}

// State of a checksum lasts one run of the parser or control that it is instantiated in.
extern Checksum<W> {
    Checksum(PNA_HashAlgorithm_t hash);
    void clear();
    void update<T>(in T data);
    @noSideEffects W get();
}

// One's complement, as in IPv4, TCP and UDP; data is a multiple of 16 bits.
extern InternetChecksum {
    InternetChecksum();
    void clear();
    void add<T>(in T data);
    void subtract<T>(in T data);
    @noSideEffects bit<16> get();
    @noSideEffects bit<16> get_state();
    void set_state(in bit<16> checksum_state);
}

enum PNA_CounterType_t { PACKETS, BYTES, PACKETS_AND_BYTES }

@noWarn("unused")
extern Counter<W, S> {
    Counter(bit<32> n_counters, PNA_CounterType_t type);
    void count(in S index);
#ifndef PNA_WITHOUT_DIRECTIONS
    void count(in S index, in bit<32> increment); // bytes
#endif
}

// Belongs to the table that names it as pna_direct_counter, whose actions call `count`.
@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(PNA_CounterType_t type);
    void count();
#ifndef PNA_WITHOUT_DIRECTIONS
    void count(in bit<32> increment);
#endif
}

enum PNA_MeterType_t { PACKETS, BYTES }

enum PNA_MeterColor_t { RED, GREEN, YELLOW }

// Without a colour a packet counts as green before.
extern Meter<S> {
    Meter(bit<32> n_meters, PNA_MeterType_t type);
    PNA_MeterColor_t execute(in S index, in PNA_MeterColor_t color);
    PNA_MeterColor_t execute(in S index);
}

extern DirectMeter {
    DirectMeter(PNA_MeterType_t type);
    PNA_MeterColor_t execute(in PNA_MeterColor_t color);
    PNA_MeterColor_t execute();
}

extern Register<T, S> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    @noSideEffects T read(in S index);
    void write(in S index, in T value);
}

// A number from min to max, both included.
extern Random<T> {
    Random(T min, T max);
    T read();
}

extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(PNA_HashAlgorithm_t algo, bit<32> size, bit<32> outputWidth);
}

// A message to the control plane.
extern Digest<T> {
    Digest();
    void pack(in T data);
}

// -- blocks -------------------------------------------------------------------------------------

#ifdef PNA_WITHOUT_DIRECTIONS
parser MainParserT<MH, MM>(packet_in pkt, out MH main_hdr, inout MM main_user_meta,
                           in pna_main_parser_input_metadata_t istd);

control MainControlT<MH, MM>(inout MH main_hdr, inout MM main_user_meta,
                             in pna_main_input_metadata_t istd,
                             inout pna_main_output_metadata_t ostd);

control MainDeparserT<MH, MM>(packet_out pkt, inout MH main_hdr, in MM main_user_meta,
                              in pna_main_output_metadata_t ostd);

package PNA_NIC<MH, MM>(MainParserT<MH, MM> main_parser,
                        MainControlT<MH, MM> main_control,
                        MainDeparserT<MH, MM> main_deparser);
#else
parser MainParserT<PM, MH, MM>(packet_in pkt, out MH main_hdr, inout MM main_user_meta,
                               in pna_main_parser_input_metadata_t istd);

control PreControlT<PH, PM>(in PH pre_hdr, inout PM pre_user_meta,
                            in pna_pre_input_metadata_t istd, inout pna_pre_output_metadata_t ostd);

control MainControlT<PM, MH, MM>(inout MH main_hdr, inout MM main_user_meta,
                                 in pna_main_input_metadata_t istd,
                                 inout pna_main_output_metadata_t ostd);

control MainDeparserT<MH, MM>(packet_out pkt, in MH main_hdr, in MM main_user_meta,
                              in pna_main_output_metadata_t ostd);

package PNA_NIC<PH, PM, MH, MM>(MainParserT<PM, MH, MM> main_parser,
                                PreControlT<PH, PM> pre_control,
                                MainControlT<PM, MH, MM> main_control,
                                MainDeparserT<MH, MM> main_deparser);
#endif

#endif
