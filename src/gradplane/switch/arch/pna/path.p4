// The path of a packet through the Portable NIC Architecture: main parser, pre control, main control,
// main deparser; then its mirror copies, and drop, send, or a pass in the other direction.
//
// Ports below FIRST_VPORT are the network's, those from it on a host's. A packet that a host sends to
// a host is looped back: it passes once more, towards the host; so does one from the network to the
// network, towards the network. There is no inline accelerator, so what the pre control asks of one
// has no effect; it gets the main parser's headers and metadata. Times are in microseconds.

#include <machine.p4>

const bit<32> FIRST_VPORT = 0x100;

const bit<32> FROM_PORT = 0;        // kinds of arrivals
const bit<32> LOOPED_BACK = 1;

const bit<32> NET_TO_HOST = 0;      // PNA_Direction_t
const bit<32> HOST_TO_NET = 1;

struct headers_t {}
struct metadata_t {}

struct pna_main_parser_input_metadata_t {
    bit<32> direction;
    bit<3> pass;
    bool loopedback;
    bit<32> input_port;
}

struct pna_pre_input_metadata_t {
    bit<32> input_port;
    bit<32> parser_error;
    bit<32> direction;
    bit<3> pass;
    bool loopedback;
}

struct pna_pre_output_metadata_t {
    bool decrypt;
}

struct pna_main_input_metadata_t {
    bit<32> direction;
    bit<3> pass;
    bool loopedback;
    bit<64> timestamp;
    bit<32> parser_error;
    bit<8> class_of_service;
    bit<32> input_port;
}

struct pna_main_output_metadata_t {
    bit<8> class_of_service;
}

// What calls of externs leave for the path. mirrored: a bit for each slot that was given a session.
struct notes_t {
    bit<32> port;
    bit<16> session0;
    bit<16> session1;
    bit<16> session2;
    bit<16> session3;
    bit<4> mirrored;
    bool sent;
}

struct packet_t {
    headers_t hdr;
    metadata_t meta;
    pna_main_parser_input_metadata_t parser_input;
    pna_pre_input_metadata_t pre_input;
    pna_pre_output_metadata_t pre_asked;
    pna_main_input_metadata_t input;
    pna_main_output_metadata_t asked;
    notes_t notes;
}

control ingress(in bytes_t bytes, in bit<32> port, in bit<32> kind, in bit<32> passes) {
    packet_t p;
    apply {
        begin(p, bytes);
        bool looped = kind == LOOPED_BACK;
        bool from_host = port >= FIRST_VPORT;
        bit<32> direction = from_host != looped ? HOST_TO_NET : NET_TO_HOST;
        p.parser_input.direction = direction;
        p.parser_input.loopedback = looped;
        p.parser_input.input_port = port;
        bit<64> now = microseconds();
        enter("main parser");
        bit<32> code = run("main_parser", p.hdr, p.meta, p.parser_input);
        if (code != 0) {
            rejected(code);
        }
        p.pre_input.input_port = port;
        p.pre_input.parser_error = code;
        p.pre_input.direction = direction;
        p.pre_input.loopedback = looped;
        enter("pre control");
        run("pre_control", p.hdr, p.meta, p.pre_input, p.pre_asked);
        p.pre_input.loopedback = true;  // lost where there is no pre control
        p.input.direction = direction;
        p.input.loopedback = looped;
        p.input.timestamp = now;
        p.input.parser_error = code;
        p.input.input_port = port;
        enter("main control");
        run("main_control", p.hdr, p.meta, p.input, p.asked);
        enter("main deparser");
        bytes_t left = deparse("main_deparser", "keep", p.hdr, p.meta, p.asked);
        send_digests(p);

        for (bit<32> slot = 0; slot < 4; slot = slot + 1) {
            if (p.notes.mirrored[0:0] == 1) {
                session_t s = session((bit<32>) p.notes.session0, passes);
                bytes_t mirrored = left;
                if (s.truncate != 0) {
                    mirrored = cut(mirrored, s.truncate);
                }
                for (bit<32> i = 0; i < s.count; i = i + 1) {
                    replica_t r = replica(s.first + i);
                    send(r.port, mirrored);
                }
            }
            p.notes.mirrored = p.notes.mirrored >> 1;
            p.notes.session0 = p.notes.session1;
            p.notes.session1 = p.notes.session2;
            p.notes.session2 = p.notes.session3;
        }

        if (!p.notes.sent) {
            drop("main control: the packet was not sent");
            return;
        }
        bool to_host = p.notes.port >= FIRST_VPORT;
        if (p.pre_input.loopedback && to_host != (direction == NET_TO_HOST)) {
            note("looped back");
            again(LOOPED_BACK, port, passes, left);
            return;
        }
        send(p.notes.port, left);
    }
}

// -- externs ------------------------------------------------------------------------------------

control drop_packet(inout notes_t notes) {
    apply {
        notes.sent = false;
    }
}

control send_to_port(in bit<32> port, inout notes_t notes) {
    apply {
        notes.sent = true;
        notes.port = port;
    }
}

control mirror_packet(in bit<8> slot, in bit<16> session, inout notes_t notes) {
    apply {
        if (slot == 0) {
            notes.mirrored[0:0] = 1;
            notes.session0 = session;
        } else if (slot == 1) {
            notes.mirrored[1:1] = 1;
            notes.session1 = session;
        } else if (slot == 2) {
            notes.mirrored[2:2] = 1;
            notes.session2 = session;
        } else if (slot == 3) {
            notes.mirrored[3:3] = 1;
            notes.session3 = session;
        }
    }
}
