// The path of a packet through a pipe of Tofino 1 or 2: ingress, the traffic manager, egress.
//
// The ingress parser reads the intrinsic metadata, the port's metadata or a resubmit header, then
// the packet; the egress parser the intrinsic metadata, then what the ingress deparser emitted or a
// mirror header and the mirrored packet. After ingress the traffic manager makes, in this order: the
// mirror copy; then, unless the packet is resubmitted, the unicast copy, those of both multicast
// groups and the copy to the CPU.
//
// Times are in nanoseconds since the switch started. arch/tna/woven_path.py says what the calls of
// `chip`, `error_flags`, `keeps_errors` and `parser_of` stand for in a program.

#include <machine.p4>

// The kinds of arrivals beside those from a port.
const bit<32> RESUBMIT = 1;
const bit<32> RECIRCULATE = 2;

const bit<32> FCS = 4;              // bytes that lengths include and packets here do not have
const bit<32> PIPE_BITS = 7;        // a port's number is its pipe's above so many bits
const bit<32> LOCAL_PORTS = 128;
const bit<32> QUEUE_BITS = 4;       // in ghost metadata, of a queue's number above its port's
const bit<32> MOST_LENGTH = 0x3ffff;
const bit<32> NONE = 0xffffffff;
const bit<2> DEFLECT = 1;
const bit<2> DEFLECTED = 2;

// Bits of drop_ctl.
const bit<3> NO_COPY = 1;
const bit<3> NO_COPY_TO_CPU = 2;
const bit<3> NO_MIRROR_COPY = 4;

struct fields_t {}
struct ingress_headers_t {}
struct ingress_metadata_t {}
struct egress_headers_t {}
struct egress_metadata_t {}
struct ingress_intrinsic_metadata_t {}
struct egress_intrinsic_metadata_t {}
struct egress_intrinsic_metadata_for_output_port_t {}

struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<16> parser_err;
}

struct ingress_intrinsic_metadata_for_tm_t {
    bit<32> ucast_egress_port;
    bit<1> bypass_egress;
    bit<1> deflect_on_drop;
    bit<32> ingress_cos;
    bit<32> qid;
    bit<1> copy_to_cpu;
    bit<32> mcast_grp_a;
    bit<32> mcast_grp_b;
    bit<32> level1_exclusion_id;
    bit<32> level2_exclusion_id;
    bit<16> rid;
    bit<1> ucast_egress_port_is_set;    // 0 is a destination, too
    bit<1> mcast_grp_a_is_set;
    bit<1> mcast_grp_b_is_set;
}

struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    bit<1> mirror_io_select;
}

struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<16> parser_err;
}

struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
}

header ghost_intrinsic_metadata_t {
    bit<1> ping_pong;
    bit<32> qlength;
    bit<32> qid;
    bit<32> pipe_id;
}

// The headers that the chip puts in front of packets.
header ingress_front_t {
    bit<1> resubmit_flag;
    bit<32> ingress_port;
    bit<64> ingress_mac_tstamp;
}

header port_metadata_t {}           // also what a resubmitted packet has in their place

header egress_front_t {
    bit<32> egress_port;
    bit<32> enq_qdepth;
    bit<64> enq_tstamp;
    bit<32> deq_qdepth;
    bit<64> deq_timedelta;
    bit<16> egress_rid;
    bit<1> egress_rid_first;
    bit<32> egress_qid;
    bit<32> egress_cos;
    bit<1> deflection_flag;
    bit<32> pkt_length;
}

// What deparsers ask of the traffic manager.
struct notes_t {
    bool mirrored;
    bool resubmitted;
    bit<32> session;
    bytes_t mirror_header;
    bytes_t resubmit_header;
}

struct ingress_packet_t {
    ingress_headers_t hdr;
    ingress_metadata_t meta;
    ingress_intrinsic_metadata_t intrinsic;
    ingress_intrinsic_metadata_for_tm_t tm;
    ingress_intrinsic_metadata_from_parser_t parsed;
    ingress_intrinsic_metadata_for_deparser_t asked;
    ghost_intrinsic_metadata_t ghost;
    notes_t notes;
}

struct egress_packet_t {
    egress_headers_t hdr;
    egress_metadata_t meta;
    egress_intrinsic_metadata_t intrinsic;
    egress_intrinsic_metadata_from_parser_t parsed;
    egress_intrinsic_metadata_for_deparser_t asked;
    egress_intrinsic_metadata_for_output_port_t output;
    notes_t notes;
}

struct ghost_packet_t {
    ghost_intrinsic_metadata_t ghost;
}

// What differs between chips. recirculating: the ports of each pipe that lead back to ingress, from
// the first on.
struct chip_t {
    bit<32> cpu_port;
    bit<32> first_recirculating;
    bit<32> recirculating;
}

extern chip_t chip();
extern bit<32> parser_of(string side, in bit<32> port);
extern bit<16> error_flags(in bit<32> code);
extern bool keeps_errors();         // whether ingress reads them: packets with errors are not lost
// Add to what counters with true accounting have counted that the packet has become longer.
extern void recount<P>(in P packet, in bit<32> before, in bit<32> after);

control ingress(in bytes_t bytes, in bit<32> port, in bit<32> kind, in bit<32> passes,
                in port_metadata_t resubmitted) {
    ingress_packet_t p;
    ingress_front_t front;
    port_metadata_t own;
    apply {
        bytes_t arrived = keep(bytes);
        if (kind == RESUBMIT) {
            own = resubmitted;
            front.resubmit_flag = 1;
        } else {
            own = read<port_metadata_t>(port_metadata(port));
        }
        front.ingress_port = port;
        front.ingress_mac_tstamp = nanoseconds();
        arrived = behind(own, arrived);
        arrived = behind(front, arrived);
        begin(p, arrived);
        bit<32> length = size(bytes);
        measure(p, length + FCS);
        enter("ingress parser");
        bit<32> number = parser_of("ingress_parser", port);
        bit<32> code = run_one("ingress_parser", number, p.hdr, p.meta, p.intrinsic, p.tm, p.parsed);
        if (code != 0) {
            rejected(code);
        }
        p.parsed.global_tstamp = (bit<48>) nanoseconds();
        p.parsed.parser_err = error_flags(code);
        if (code != 0 && !keeps_errors()) {
            drop("ingress parser: the packet does not parse");
            return;
        }
        enter("ingress");
        run("ingress", p.hdr, p.meta, p.intrinsic, p.parsed, p.asked, p.tm, p.ghost);
        enter("ingress deparser");
        bytes_t left = deparse("ingress_deparser", "keep", p.hdr, p.meta, p.asked, p.intrinsic);
        send_digests(p, port >> PIPE_BITS);

        if (p.notes.mirrored && (p.asked.drop_ctl & NO_MIRROR_COPY) == 0) {
            bytes_t whole = bytes;                  // as it came
            if (p.asked.mirror_io_select == 1) {    // as it leaves
                whole = left;
            }
            call("mirror", p.notes.session, p.notes.mirror_header, whole, passes);
        }
        bool dropped = (p.asked.drop_ctl & NO_COPY) != 0;
        if (p.notes.resubmitted && !dropped) {
            note("resubmitted");
            own = read<port_metadata_t>(p.notes.resubmit_header);
            again(RESUBMIT, port, passes, bytes, own);
            return;
        }
        bool copied = false;
        if (!dropped) {
            if (p.tm.ucast_egress_port_is_set == 1) {
                copied = true;
                call("replicate", p, left, passes, p.tm.ucast_egress_port, p.tm.rid, (bit<1>) 0);
            }
            // Programs also write 0 for no group: it is one if it has members.
            if (p.tm.mcast_grp_a != 0 || (p.tm.mcast_grp_a_is_set == 1 && has_members(0))) {
                copied = true;
                call("multicast", p, left, passes, p.tm.mcast_grp_a);
            }
            if (p.tm.mcast_grp_b != 0 || (p.tm.mcast_grp_b_is_set == 1 && has_members(0))) {
                copied = true;
                call("multicast", p, left, passes, p.tm.mcast_grp_b);
            }
        }
        if (p.tm.copy_to_cpu == 1 && (p.asked.drop_ctl & NO_COPY_TO_CPU) == 0) {
            copied = true;
            bit<32> cpu = cpu_port();
            if (cpu == NONE) {
                chip_t c = chip();
                cpu = c.cpu_port;
            }
            call("replicate", p, left, passes, cpu, (bit<16>) 0, (bit<1>) 0);
        }
        if (dropped) {
            drop("ingress: drop_ctl is set");
        } else if (!copied) {
            drop("ingress: no destination");
        }
    }
}

// -- the traffic manager --------------------------------------------------------------------------

// Mirror a packet to a session, behind a header of the program's.
control mirror(in bit<32> number, in bytes_t head, in bytes_t bytes, in bit<32> passes) {
    apply {
        session_t s = session(number, passes);
        if (s.exists) {
            bytes_t whole = joined(head, bytes);
            if (s.truncate != 0) {
                whole = cut(whole, s.truncate);
            }
            for (bit<32> i = 0; i < s.count; i = i + 1) {
                replica_t r = replica(s.first + i);
                enqueue(r.port, s.service, whole, r.port, r.instance, (bit<1>) 0, s.service,
                        s.service, passes + 1, (bit<2>) 0);
            }
        }
    }
}

// Exclusion: a node's level 1 id is compared with the packet's. The packet's level 2 id stands for
// ports, which are left out in nodes with the packet's replication id.
control multicast(in ingress_packet_t p, in bytes_t left, in bit<32> passes, in bit<32> group) {
    apply {
        members_t m = members(group);
        bit<32> rid = (bit<32>) p.tm.rid;
        for (bit<32> i = 0; i < m.count; i = i + 1) {
            replica_t r = replica(m.first + i);
            bool own = r.exclusion == p.tm.level1_exclusion_id;
            if (!own && (rid == (bit<32>) r.instance || rid == global_rid())) {
                own = pruned(p.tm.level2_exclusion_id, r.port);
            }
            if (!own) {
                bit<1> first = i == 0 ? 1w1 : 1w0;
                call("replicate", p, left, passes, r.port, r.instance, first);
            }
        }
    }
}

control replicate(in ingress_packet_t p, in bytes_t left, in bit<32> passes, in bit<32> port,
                  in bit<16> rid, in bit<1> first) {
    apply {
        if (p.tm.bypass_egress == 1) {
            call("leave", left, port, passes);
        } else {
            enqueue(port, p.tm.qid, left, port, rid, first, p.tm.qid, p.tm.ingress_cos, passes,
                    (bit<2>) p.tm.deflect_on_drop);
        }
    }
}

// -- egress ---------------------------------------------------------------------------------------

control egress(in bytes_t bytes, in bit<32> port, in bit<16> rid, in bit<1> first,
               in bit<32> queue, in bit<32> service, in bit<32> passes, in bit<2> deflect) {
    egress_packet_t p;
    egress_front_t front;
    apply {
        times_t times = queue_times(port);
        front.egress_port = port;
        front.enq_qdepth = times.length;
        front.enq_tstamp = 1000 * times.entered;
        front.deq_qdepth = times.left;
        front.deq_timedelta = 1000 * times.waited;
        front.egress_rid = rid;
        front.egress_rid_first = first;
        front.egress_qid = queue;
        front.egress_cos = service;
        front.deflection_flag = deflect == DEFLECTED ? 1w1 : 1w0;
        bit<32> length = size(bytes);
        front.pkt_length = length + FCS;
        bytes_t arrived = behind(front, bytes);
        begin(p, arrived);
        measure(p, length + FCS);
        enter("egress parser, port {}", port);
        bit<32> number = parser_of("egress_parser", port);
        bit<32> code = run_one("egress_parser", number, p.hdr, p.meta, p.intrinsic, p.parsed,
                               p.asked);
        if (code != 0) {
            rejected(code);
        }
        p.parsed.global_tstamp = (bit<48>) nanoseconds();
        p.parsed.parser_err = error_flags(code);
        enter("egress");
        run("egress", p.hdr, p.meta, p.intrinsic, p.parsed, p.asked, p.output);
        enter("egress deparser");
        bytes_t left = deparse("egress_deparser", "send", p.hdr, p.meta, p.asked, p.intrinsic,
                               p.parsed);
        bit<32> emitted = size(left);
        recount(p, length, emitted);
        if (p.notes.mirrored && (p.asked.drop_ctl & NO_MIRROR_COPY) == 0) {
            call("mirror", p.notes.session, p.notes.mirror_header, left, passes);
        }
        if ((p.asked.drop_ctl & NO_COPY) != 0) {
            drop("egress: drop_ctl is set");
            return;
        }
        call("leave", left, port, passes);
    }
}

// Send a packet, or take it in again where the port is one for that.
control leave(in bytes_t bytes, in bit<32> port, in bit<32> passes) {
    apply {
        chip_t c = chip();
        bit<32> place = (port & (LOCAL_PORTS - 1)) - c.first_recirculating;
        if ((place < c.recirculating && port != c.cpu_port) || leads_back(port)) {
            call("take_in", bytes, port, passes);
        } else {
            send(port, bytes);
        }
    }
}

control take_in(in bytes_t bytes, in bit<32> port, in bit<32> passes) {
    apply {
        note("recirculated by port {}", port);
        report_returned(port, bytes);
        again(RECIRCULATE, port, passes, bytes);
    }
}

// -- queues ---------------------------------------------------------------------------------------

// Run the ghost control for both values of ping_pong, so that a program that keeps two copies finds
// either up to date. A queue's id is its port's number in the pipe above its own.
control queue_changed(in bit<32> port, in bit<32> priority, in bit<32> length) {
    ghost_packet_t p;
    apply {
        bytes_t empty = nothing();
        for (bit<32> i = 0; i < 2; i = i + 1) {
            begin(p, empty);
            p.ghost = read<ghost_intrinsic_metadata_t>(empty);
            p.ghost.ping_pong = (bit<1>) i;
            p.ghost.qlength = length < MOST_LENGTH ? length : MOST_LENGTH;
            p.ghost.qid = (port & (LOCAL_PORTS - 1)) << QUEUE_BITS | priority;
            p.ghost.pipe_id = port >> PIPE_BITS;
            run("ghost", p.ghost);
        }
    }
}

// -- externs --------------------------------------------------------------------------------------

control mirror_emit(in bit<32> session, in fields_t fields, inout notes_t notes) {
    apply {
        notes.mirrored = true;
        notes.session = session;
        notes.mirror_header = encoded(fields);
    }
}

control mirror_emit_alone(in bit<32> session, inout notes_t notes) {
    apply {
        notes.mirrored = true;
        notes.session = session;
        notes.mirror_header = nothing();
    }
}

control resubmit_emit(in fields_t fields, inout notes_t notes) {
    apply {
        notes.resubmitted = true;
        notes.resubmit_header = encoded(fields);
    }
}

control resubmit_emit_alone(inout notes_t notes) {
    apply {
        notes.resubmitted = true;
        notes.resubmit_header = nothing();
    }
}
