// Every way of a packet through PSA, alone and together: bits of the packet say which.
#include <core.p4>
#include <psa.p4>

header way_t { bit<8> ingress; bit<8> egress; bit<8> left; bit<8> where; }
header note_t { bit<8> kind; bit<24> value; }
header trail_t { bit<8> path; bit<32> port; bit<5> odd; bit<16> instance; bit<3> service; }
struct headers_t { way_t way; trail_t[4] trail; note_t note; }
struct small_t { bit<8> a; }
struct large_t { bit<8> a; bit<72> b; note_t note; bool c; }
struct meta_t { bit<8> rounds; bit<8> path; large_t large; small_t small; }
error { Odd }

parser IngressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_ingress_parser_input_metadata_t s, in small_t resubmitted, in large_t recirculated) {
    state start {
        p.extract(h.way);
        m.small = resubmitted;
        m.large = recirculated;
        m.rounds = resubmitted.a;
        verify(h.way.where != 77, error.Odd);
        transition select(s.packet_path, h.way.where) {
            (PSA_PacketPath_t.RECIRCULATE, _) : accept;
            (_, 0 .. 200) : trail;
            default : accept;
        }
    }
    state trail { p.extract(h.trail.next); transition accept; }
}

control ingress(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t s,
        inout psa_ingress_output_metadata_t o) {
    Register<bit<32>, bit<8>>(256, 7) seen;
    Counter<bit<32>, bit<8>>(7, PSA_CounterType_t.PACKETS_AND_BYTES) paths;
    apply {
        bit<8> path = 0;
        if (s.packet_path == PSA_PacketPath_t.RESUBMIT) { path = 5; }
        if (s.packet_path == PSA_PacketPath_t.RECIRCULATE) { path = 6; }
        paths.count(path);
        seen.write(h.way.where, seen.read(h.way.where) + 1);
        m.path = path;
        o.class_of_service = (ClassOfService_t) h.way.where;
        if (h.way.ingress[0:0] == 1) { send_to_port(o, (PortId_t) (bit<32>) h.way.where); }
        if (h.way.ingress[1:1] == 1) { multicast(o, (MulticastGroup_t) (bit<32>) h.way.where[2:0]); }
        if (h.way.ingress[2:2] == 1 && m.rounds < 3) { o.resubmit = true; }
        if (h.way.ingress[3:3] == 1) {
            o.clone = true;
            o.clone_session_id = (CloneSessionId_t) (bit<16>) h.way.where[2:0];
        }
        if (h.way.ingress[4:4] == 1 && h.way.left > 0) {
            send_to_port(o, PSA_PORT_RECIRCULATE);
        }
        if (h.way.ingress[5:5] == 1) { send_to_port(o, PSA_PORT_CPU); }
        if (h.way.ingress[6:6] == 1) { ingress_drop(o); }
        if (h.way.ingress[7:7] == 1) { o.multicast_group = (MulticastGroup_t) 70000; }
        if (s.parser_error == error.Odd) { o.egress_port = (PortId_t) 0x12345; }
        assert(h.way.where != 78);
    }
}

control IngressDeparserImpl(packet_out p, out large_t clone, out small_t resubmit,
        out small_t normal, inout headers_t h, in meta_t m, in psa_ingress_output_metadata_t o) {
    Digest<way_t>() ways;
    Digest<small_t>() rounds;
    apply {
        if (psa_clone_i2e(o)) {
            clone.a = m.path;
            clone.b = (bit<72>) h.way.where << 60;
            clone.note.setValid();
            clone.note.value = 0x1234;
            clone.c = o.drop;
        }
        if (psa_resubmit(o)) { resubmit.a = m.rounds + 1; rounds.pack(resubmit); }
        if (psa_normal(o)) {
            normal.a = m.large.a + h.way.where;
            h.note.setValid();
            h.note.kind = m.path;
        }
        if (h.way.where[3:3] == 1) { ways.pack(h.way); }
        assert(h.way.where != 79);
        p.emit(h);
    }
}

parser EgressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_egress_parser_input_metadata_t s, in small_t normal, in large_t cloned_i2e,
        in large_t cloned_e2e) {
    state start {
        p.extract(h.way);
        m.small = normal;
        transition select(s.packet_path) {
            PSA_PacketPath_t.CLONE_I2E : cloned;
            PSA_PacketPath_t.CLONE_E2E : again;
            default : note;
        }
    }
    state cloned { m.large = cloned_i2e; transition accept; }
    state again { m.large = cloned_e2e; transition select(h.way.left) { 0 : accept; 1 : note; } }
    state note { p.extract(h.trail[1]); transition accept; }
}

control egress(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t s,
        inout psa_egress_output_metadata_t o) {
    Counter<bit<32>, bit<32>>(9, PSA_CounterType_t.BYTES) ports;
    apply {
        ports.count((bit<32>) s.egress_port);
        h.trail.push_front(1);
        h.trail[0].setValid();
        h.trail[0].port = (PortIdUint_t) s.egress_port;
        h.trail[0].instance = (EgressInstanceUint_t) s.instance;
        h.trail[0].service = ((ClassOfServiceUint_t) s.class_of_service)[2:0];
        h.trail[0].path = m.large.a + m.small.a;
        if (m.large.c) { h.trail[0].odd = 5w21; }
        if (m.large.note.isValid()) { h.trail[0].odd = 5w9; }
        if (s.parser_error != error.NoError) { h.note.setValid(); h.note.value = 24w0xe; }
        if (h.way.egress[0:0] == 1 && h.way.left > 0) {
            o.clone = true;
            o.clone_session_id = (CloneSessionId_t) (bit<16>) h.way.where[1:0];
        }
        if (h.way.egress[1:1] == 1 && h.way.where[0:0] == 1) { egress_drop(o); }
        h.way.egress = h.way.egress >> 1;
        if (h.way.left > 0) { h.way.left = h.way.left - 1; }
        assert(h.way.where != 80);
    }
}

control EgressDeparserImpl(packet_out p, out large_t clone, out large_t recirculate,
        inout headers_t h, in meta_t m, in psa_egress_output_metadata_t o,
        in psa_egress_deparser_input_metadata_t s) {
    apply {
        if (psa_clone_e2e(o)) { clone = m.large; clone.a = 0xc0; clone.c = o.drop; }
        if (psa_recirculate(o, s)) { recirculate.a = m.small.a; recirculate.b = 72w3; }
        assert(h.way.where != 81);
        p.emit(h);
    }
}

IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
