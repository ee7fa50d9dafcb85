// A PSA program with everything that a controller may touch.
#include <core.p4>
#include <psa.p4>

typedef bit<48> mac_t;
header ethernet_t { mac_t dst; mac_t src; bit<16> type; }

@controller_header("packet_in")
header packet_in_t { PortIdInHeader_t ingress_port; ClassOfServiceInHeader_t service; }
@controller_header("packet_out")
header packet_out_t { PortIdInHeader_t egress_port; }

struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; }
struct meta_t { PortId_t ingress_port; bool learn; }
struct empty_t { }
struct learn_t { mac_t mac; PortId_t port; }

parser IngressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_ingress_parser_input_metadata_t s, in empty_t resubmitted, in empty_t recirculated) {
    state start {
        m.ingress_port = s.ingress_port;
        transition select(s.ingress_port) { PSA_PORT_CPU : from_cpu; default : ethernet; }
    }
    state from_cpu { p.extract(h.packet_out); transition ethernet; }
    state ethernet { p.extract(h.ethernet); transition accept; }
}

control ingress(inout headers_t h, inout meta_t m, in psa_ingress_input_metadata_t s,
        inout psa_ingress_output_metadata_t o) {
    Counter<bit<64>, PortId_t>(16, PSA_CounterType_t.PACKETS_AND_BYTES) per_port;
    Meter<ClassOfService_t>(8, PSA_MeterType_t.BYTES) rates;
    Register<PortId_t, bit<8>>(4, (PortId_t) 77) last;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) per_entry;
    DirectMeter(PSA_MeterType_t.PACKETS) entry_rate;
    ActionProfile(8) hops;
    @max_group_size(4) ActionSelector(PSA_HashAlgorithm_t.CRC32, 32, 16) spread;

    action forward(PortId_t port) {
        send_to_port(o, port);
        per_entry.count();
        PSA_MeterColor_t ignored = entry_rate.execute();
    }
    action flood(MulticastGroup_t group) { multicast(o, group); }
    action mirror(CloneSessionId_t session, ClassOfService_t service) {
        o.clone = true;
        o.clone_session_id = session;
        o.class_of_service = service;
    }
    action to_cpu() { send_to_port(o, PSA_PORT_CPU); }
    action learn() { m.learn = true; }
    action drop() { ingress_drop(o); }

    table macs {
        key = { h.ethernet.dst : exact; }
        actions = { forward; flood; to_cpu; drop; }
        default_action = drop();
        psa_direct_counter = per_entry;
        psa_direct_meter = entry_rate;
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
        size = 256;
    }
    table sources {
        key = { s.ingress_port : exact; h.ethernet.src : ternary; }
        actions = { learn; mirror; @defaultonly NoAction; }
    }
    action to(PortId_t port) { send_to_port(o, port); }
    table routed {
        key = { h.ethernet.type : exact; }
        actions = { to; NoAction; }
        psa_implementation = hops;
    }
    table balanced {
        key = { h.ethernet.type : exact; h.ethernet.src : selector; }
        actions = { to; NoAction; }
        psa_implementation = spread;
    }
    apply {
        if (h.packet_out.isValid()) {
            send_to_port(o, psa_PortId_header_to_int(h.packet_out.egress_port));
        } else {
            per_port.count(s.ingress_port);
            last.write(0, s.ingress_port);
            PSA_MeterColor_t ignored = rates.execute((ClassOfService_t) 1);
            macs.apply();
            sources.apply();
            routed.apply();
            balanced.apply();
        }
        h.packet_out.setInvalid();
    }
}

control IngressDeparserImpl(packet_out p, out empty_t clone, out empty_t resubmit,
        out meta_t normal, inout headers_t h, in meta_t m, in psa_ingress_output_metadata_t o) {
    Digest<learn_t>() learnt;
    apply {
        if (m.learn) { learnt.pack({ h.ethernet.src, m.ingress_port }); }
        if (psa_normal(o)) { normal = m; }
        p.emit(h);
    }
}

parser EgressParserImpl(packet_in p, out headers_t h, inout meta_t m,
        in psa_egress_parser_input_metadata_t s, in meta_t normal, in empty_t cloned_i2e,
        in empty_t cloned_e2e) {
    state start { m = normal; p.extract(h.ethernet); transition accept; }
}

control egress(inout headers_t h, inout meta_t m, in psa_egress_input_metadata_t s,
        inout psa_egress_output_metadata_t o) {
    apply {
        if (s.egress_port == PSA_PORT_CPU) {
            h.packet_in.setValid();
            h.packet_in.ingress_port = psa_PortId_int_to_header(m.ingress_port);
            h.packet_in.service = psa_ClassOfService_int_to_header(s.class_of_service);
        }
    }
}

control EgressDeparserImpl(packet_out p, out empty_t clone, out empty_t recirculate,
        inout headers_t h, in meta_t m, in psa_egress_output_metadata_t o,
        in psa_egress_deparser_input_metadata_t s) {
    apply { p.emit(h); }
}

IngressPipeline(IngressParserImpl(), ingress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), egress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
