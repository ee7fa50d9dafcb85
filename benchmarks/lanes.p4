// Minimal aggregation: 128 lanes per packet, each looked up and added to a register.
//
// A lane's code is the key of the lane's own table; the value found there is added to the lane's
// sum in the packet's slot, and the packet goes back to its sender with the sums.

#include <core.p4>
#include <v1model.p4>

#define SLOTS 256
#define EIGHT(F, n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)
#define EACH_LANE(F) \
    EIGHT(F, 0) EIGHT(F, 1) EIGHT(F, 2) EIGHT(F, 3) EIGHT(F, 4) EIGHT(F, 5) EIGHT(F, 6) \
    EIGHT(F, 7) EIGHT(F, 8) EIGHT(F, 9) EIGHT(F, a) EIGHT(F, b) EIGHT(F, c) EIGHT(F, d) \
    EIGHT(F, e) EIGHT(F, f)

const bit<16> ETHERTYPE_CODES = 0x88b5;
const bit<16> ETHERTYPE_SUMS = 0x88b6;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header slot_t { bit<16> index; }

#define CODE_FIELD(n) bit<8> lane##n;
header codes_t { EACH_LANE(CODE_FIELD) }

#define SUM_FIELD(n) bit<32> lane##n;
header sums_t { EACH_LANE(SUM_FIELD) }

struct headers_t {
    ethernet_t ethernet;
    slot_t     slot;
    codes_t    codes;
    sums_t     sums;
}

struct metadata_t { }

parser LanesParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_CODES: parse_codes;
            default: accept;
        }
    }
    state parse_codes {
        packet.extract(hdr.slot);
        packet.extract(hdr.codes);
        transition accept;
    }
}

control Lane(in bit<8> code, in bit<16> slot, out bit<32> sum) {
    register<bit<32>>(SLOTS) sums;
    bit<8> value = 0;

    action set(bit<8> found) { value = found; }

    table values {
        key = { code : exact @name("code"); }
        actions = { set; NoAction; }
        default_action = NoAction();
        size = 256;
    }

    apply {
        values.apply();
        sums.read(sum, (bit<32>) slot);
        sum = sum + (bit<32>) value;
        sums.write((bit<32>) slot, sum);
    }
}

control LanesVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control LanesIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
#define LANE_INSTANCE(n) Lane() lane##n;
    EACH_LANE(LANE_INSTANCE)

    apply {
        if (hdr.codes.isValid() && hdr.slot.index < SLOTS) {
            hdr.sums.setValid();
#define LANE_APPLY(n) lane##n.apply(hdr.codes.lane##n, hdr.slot.index, hdr.sums.lane##n);
            EACH_LANE(LANE_APPLY)
            hdr.codes.setInvalid();
            hdr.ethernet.ether_type = ETHERTYPE_SUMS;
            standard_metadata.egress_spec = standard_metadata.ingress_port;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control LanesEgress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) { apply { } }

control LanesCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control LanesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.slot);
        packet.emit(hdr.codes);
        packet.emit(hdr.sums);
    }
}

V1Switch(LanesParser(), LanesVerify(), LanesIngress(), LanesEgress(), LanesCompute(),
         LanesDeparser()) main;
