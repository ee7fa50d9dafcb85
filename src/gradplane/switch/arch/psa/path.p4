// The path of a packet through the Portable Switch Architecture (PSA specification 1.2, section 6):
// two pipelines and, between them, packet replication.
//
// After the ingress deparser: clone, then drop or resubmit or multicast or unicast. After the egress
// deparser: clone, then drop or recirculate or send. Both deparsers run for each packet, dropped
// ones too: they fill in the metadata of clones.
//
// Values that the specification leaves undefined are zero. Times are in microseconds. Every port
// number is a port; packets sent to PSA_PORT_CPU go to the control plane.

#include <machine.p4>

// The values of PSA_PacketPath_t; that of a packet from a port is 0.
const bit<32> NORMAL_UNICAST = 1;
const bit<32> NORMAL_MULTICAST = 2;
const bit<32> CLONE_I2E = 3;
const bit<32> CLONE_E2E = 4;
const bit<32> RESUBMIT = 5;
const bit<32> RECIRCULATE = 6;

const bit<32> PORT_RECIRCULATE = 0xfffffffa;

struct ingress_headers_t {}
struct ingress_metadata_t {}
struct egress_headers_t {}
struct egress_metadata_t {}
struct resubmit_metadata_t {}
struct recirculate_metadata_t {}
struct normal_metadata_t {}
struct clone_i2e_metadata_t {}
struct clone_e2e_metadata_t {}

struct psa_ingress_parser_input_metadata_t {
    bit<32> ingress_port;
    bit<32> packet_path;
}

struct psa_ingress_input_metadata_t {
    bit<32> ingress_port;
    bit<32> packet_path;
    bit<64> ingress_timestamp;
    bit<32> parser_error;
}

struct psa_ingress_output_metadata_t {
    bit<8> class_of_service;
    bool clone;
    bit<16> clone_session_id;
    bool drop;
    bool resubmit;
    bit<32> multicast_group;
    bit<32> egress_port;
}

struct psa_egress_parser_input_metadata_t {
    bit<32> egress_port;
    bit<32> packet_path;
}

struct psa_egress_input_metadata_t {
    bit<8> class_of_service;
    bit<32> egress_port;
    bit<32> packet_path;
    bit<16> instance;
    bit<64> egress_timestamp;
    bit<32> parser_error;
}

struct psa_egress_output_metadata_t {
    bool clone;
    bit<16> clone_session_id;
    bool drop;
}

struct psa_egress_deparser_input_metadata_t {
    bit<32> egress_port;
}

// The metadata that a deparser sets (to_...) are other values than those that a parser gets.
struct ingress_packet_t {
    ingress_headers_t hdr;
    ingress_metadata_t meta;
    psa_ingress_parser_input_metadata_t parser_input;
    resubmit_metadata_t resubmit;
    recirculate_metadata_t recirculate;
    psa_ingress_input_metadata_t input;
    psa_ingress_output_metadata_t asked;
    clone_i2e_metadata_t to_clone_i2e;
    resubmit_metadata_t to_resubmit;
    normal_metadata_t to_normal;
}

struct egress_packet_t {
    egress_headers_t hdr;
    egress_metadata_t meta;
    psa_egress_parser_input_metadata_t parser_input;
    normal_metadata_t normal;
    clone_i2e_metadata_t clone_i2e;
    clone_e2e_metadata_t clone_e2e;
    psa_egress_input_metadata_t input;
    psa_egress_output_metadata_t asked;
    psa_egress_deparser_input_metadata_t deparser_input;
    clone_e2e_metadata_t to_clone_e2e;
    recirculate_metadata_t to_recirculate;
}

control ingress(in bytes_t bytes, in bit<32> port, in bit<32> kind, in bit<32> passes,
                in resubmit_metadata_t resubmit, in recirculate_metadata_t recirculate) {
    ingress_packet_t p;
    normal_metadata_t no_normal;        // metadata that this packet does not bring
    clone_i2e_metadata_t no_clone_i2e;
    clone_e2e_metadata_t no_clone_e2e;
    recirculate_metadata_t no_recirculate;
    apply {
        begin(p, bytes);
        if (kind == RESUBMIT) {
            p.resubmit = resubmit;
        } else if (kind == RECIRCULATE) {
            p.recirculate = recirculate;
        }
        p.parser_input.ingress_port = port;
        p.parser_input.packet_path = kind;
        bit<64> now = microseconds();
        enter("ingress parser");
        bit<32> code = run("ingress.ip", p.hdr, p.meta, p.parser_input, p.resubmit, p.recirculate);
        if (code != 0) {
            rejected(code);
        }
        p.input.ingress_port = port;
        p.input.packet_path = kind;
        p.input.ingress_timestamp = now;
        p.input.parser_error = code;
        p.asked.drop = true;
        enter("ingress");
        run("ingress.ig", p.hdr, p.meta, p.input, p.asked);
        enter("ingress deparser");
        bytes_t left = deparse("ingress.id", "keep", p.to_clone_i2e, p.to_resubmit, p.to_normal,
                               p.hdr, p.meta, p.asked);
        send_digests(p);

        if (p.asked.clone) {            // as it arrived
            session_t s = session((bit<32>) p.asked.clone_session_id, passes);
            if (s.exists) {
                bytes_t whole = bytes;
                if (s.truncate != 0) {
                    whole = cut(whole, s.truncate);
                }
                for (bit<32> i = 0; i < s.count; i = i + 1) {
                    replica_t r = replica(s.first + i);
                    enqueue(r.port, s.service, whole, CLONE_I2E, r.port, r.instance, s.service,
                            passes + 1, no_normal, p.to_clone_i2e, no_clone_e2e);
                }
            }
        }
        if (p.asked.drop) {
            drop("ingress: drop is set");
            return;
        }
        if (p.asked.resubmit) {
            note("resubmitted");
            again(RESUBMIT, port, passes, bytes, p.to_resubmit, no_recirculate);
            return;
        }
        bit<32> service = (bit<32>) p.asked.class_of_service;
        if (p.asked.multicast_group != 0) {
            members_t m = members(p.asked.multicast_group);
            for (bit<32> i = 0; i < m.count; i = i + 1) {
                replica_t r = replica(m.first + i);
                enqueue(r.port, service, left, NORMAL_MULTICAST, r.port, r.instance, service,
                        passes, p.to_normal, no_clone_i2e, no_clone_e2e);
            }
            return;
        }
        depart(p.asked.egress_port, service, left, NORMAL_UNICAST, p.asked.egress_port, (bit<16>) 0,
               service, passes, p.to_normal, no_clone_i2e, no_clone_e2e);
    }
}

control egress(in bytes_t bytes, in bit<32> path, in bit<32> port, in bit<16> instance,
               in bit<32> service, in bit<32> passes, in normal_metadata_t normal,
               in clone_i2e_metadata_t clone_i2e, in clone_e2e_metadata_t clone_e2e) {
    egress_packet_t p;
    normal_metadata_t no_normal;
    clone_i2e_metadata_t no_clone_i2e;
    resubmit_metadata_t no_resubmit;
    apply {
        begin(p, bytes);
        p.normal = normal;
        p.clone_i2e = clone_i2e;
        p.clone_e2e = clone_e2e;
        p.parser_input.egress_port = port;
        p.parser_input.packet_path = path;
        bit<64> now = microseconds();
        enter("egress parser, port {}", port);
        bit<32> code = run("egress.ep", p.hdr, p.meta, p.parser_input, p.normal, p.clone_i2e,
                           p.clone_e2e);
        if (code != 0) {
            rejected(code);
        }
        p.input.class_of_service = (bit<8>) service;
        p.input.egress_port = port;
        p.input.packet_path = path;
        p.input.instance = instance;
        p.input.egress_timestamp = now;
        p.input.parser_error = code;
        enter("egress");
        run("egress.eg", p.hdr, p.meta, p.input, p.asked);
        p.deparser_input.egress_port = port;
        enter("egress deparser");
        bytes_t left = deparse("egress.ed", "send", p.to_clone_e2e, p.to_recirculate, p.hdr, p.meta,
                               p.asked, p.deparser_input);

        if (p.asked.clone) {            // as it leaves
            session_t s = session((bit<32>) p.asked.clone_session_id, passes);
            if (s.exists) {
                bytes_t part = left;
                if (s.truncate != 0) {
                    part = cut(part, s.truncate);
                }
                bytes_t whole = keep(part);
                for (bit<32> i = 0; i < s.count; i = i + 1) {
                    replica_t r = replica(s.first + i);
                    enqueue(r.port, s.service, whole, CLONE_E2E, r.port, r.instance, s.service,
                            passes + 1, no_normal, no_clone_i2e, p.to_clone_e2e);
                }
            }
        }
        if (p.asked.drop) {
            drop("egress: drop is set");
            return;
        }
        if (port == PORT_RECIRCULATE) {
            note("recirculated");
            again(RECIRCULATE, port, passes, left, no_resubmit, p.to_recirculate);
            return;
        }
        send(port, left);
    }
}

// -- externs ------------------------------------------------------------------------------------

control psa_clone_i2e(in psa_ingress_output_metadata_t asked, out bool result) {
    apply { result = asked.clone; }
}

control psa_resubmit(in psa_ingress_output_metadata_t asked, out bool result) {
    apply { result = !asked.drop && asked.resubmit; }
}

control psa_normal(in psa_ingress_output_metadata_t asked, out bool result) {
    apply { result = !asked.drop && !asked.resubmit; }
}

control psa_clone_e2e(in psa_egress_output_metadata_t asked, out bool result) {
    apply { result = asked.clone; }
}

control psa_recirculate(in psa_egress_output_metadata_t asked,
                        in psa_egress_deparser_input_metadata_t input, out bool result) {
    apply { result = !asked.drop && input.egress_port == PORT_RECIRCULATE; }
}
