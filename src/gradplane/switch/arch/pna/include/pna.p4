// The Portable NIC Architecture: every name, type and signature that programs written for it rely on.

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

typedef error ParserError_t;

const InterfaceId_t PNA_PORT_CPU = (InterfaceId_t) 0xfffffffd;
const MirrorSessionId_t PNA_MIRROR_SESSION_TO_CPU = (MirrorSessionId_t) 0;

enum PNA_IdleTimeout_t { NO_TIMEOUT, NOTIFY_CONTROL, AUTO_DELETE }

enum PNA_Direction_t { NET_TO_HOST, HOST_TO_NET }

enum PNA_PacketPath_t {
    FROM_NET_PORT,
    FROM_NET_LOOPEDBACK,
    FROM_NET_RECIRCULATED,
    FROM_HOST,
    FROM_HOST_LOOPEDBACK,
    FROM_HOST_RECIRCULATED
}

// -- metadata -----------------------------------------------------------------------------------

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

struct pna_main_parser_input_metadata_t {
    PNA_Direction_t direction;
    PassNumber_t pass;
    bool loopedback;
    PortId_t input_port;                // of the network, or the host's vport
}

struct pna_main_input_metadata_t {
    PNA_Direction_t direction;
    PassNumber_t pass;
    bool loopedback;
    Timestamp_t timestamp;              // in microseconds
    ParserError_t parser_error;
    ClassOfService_t class_of_service;
    PortId_t input_port;
}

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

@pure extern T SelectByDirection<T>(in PNA_Direction_t direction, in T n2h_value, in T h2n_value);

// -- externs ------------------------------------------------------------------------------------

enum PNA_HashAlgorithm_t { TARGET_DEFAULT }

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
}

// Belongs to the table that names it as pna_direct_counter, whose actions call `count`.
@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(PNA_CounterType_t type);
    void count();
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
