// An acceptor of Paxos: rounds, votes and values in registers.
#define METADATA bit<16> promised; bit<16> difference;
#define MORE_TYPES header paxos_t { bit<8> kind; bit<16> instance; bit<16> round; bit<16> voted; bit<32> value; }
#define MORE_LAST paxos_t paxos;
#define MORE_UDP_PORTS 34952 : paxos;
#define MORE_STATES state paxos { pkt.extract(hdr.paxos); transition accept; }
#include "stack.p4"

control Ingress(INGRESS_ARGS) {
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action drop() { dprsr.drop_ctl = 1; }

    Register<bit<16>, bit<16>>(65536) rounds;
    RegisterAction<bit<16>, bit<16>, bit<16>>(rounds) promise = { void apply(inout bit<16> v, out bit<16> r) { if (hdr.paxos.round >= v) { v = hdr.paxos.round; } r = v; } };
    Register<bit<16>, bit<16>>(65536) votes;
    RegisterAction<bit<16>, bit<16>, bit<16>>(votes) read_vote = { void apply(inout bit<16> v, out bit<16> r) { r = v; } };
    RegisterAction<bit<16>, bit<16>, bit<16>>(votes) vote = { void apply(inout bit<16> v, out bit<16> r) { v = hdr.paxos.round; r = v; } };
    Register<bit<32>, bit<16>>(65536) values;
    RegisterAction<bit<32>, bit<16>, bit<32>>(values) read_value = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(values) accept_value = { void apply(inout bit<32> v, out bit<32> r) { v = hdr.paxos.value; r = v; } };
    action differ() { md.difference = md.promised - hdr.paxos.round; }
    table learners { key = { hdr.paxos.kind : exact; } actions = { send; drop; } const default_action = drop(); size = 16; }
    apply {
        if (hdr.paxos.isValid()) {
            md.promised = promise.execute(hdr.paxos.instance);
            differ();
            if (md.difference == 0) {
                if (hdr.paxos.kind == 1) {
                    hdr.paxos.voted = read_vote.execute(hdr.paxos.instance); hdr.paxos.value = read_value.execute(hdr.paxos.instance); hdr.paxos.kind = 2;
                } else {
                    hdr.paxos.voted = vote.execute(hdr.paxos.instance); hdr.paxos.value = accept_value.execute(hdr.paxos.instance); hdr.paxos.kind = 4;
                }
                learners.apply();
            } else { drop(); }
        }
    }
}
#include "stack_end.p4"
