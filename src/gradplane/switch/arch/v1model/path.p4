// The path of a packet through v1model, as simple_switch runs it (behavioral-model,
// docs/simple_switch.md and targets/simple_switch/simple_switch.cpp): parser, verify checksum,
// ingress; then clone, digests, resubmit or multicast or drop or unicast; egress; then clone, drop,
// compute checksum and deparser, recirculate or send. A replica's metadata starts from zero but for
// what simple_switch sets, and the fields of the preserved list.

#include <machine.p4>

// The values of standard_metadata.instance_type, as simple_switch numbers them.
const bit<32> NORMAL = 0;
const bit<32> INGRESS_CLONE = 1;
const bit<32> EGRESS_CLONE = 2;
const bit<32> RECIRCULATED = 4;
const bit<32> REPLICATED = 5;
const bit<32> RESUBMITTED = 6;

const bit<32> NO_LIST = 256;
const bit<32> NAMED = 257;      // and above: lists of fields that a call names

struct headers_t {}
struct metadata_t {}

struct standard_metadata_t {
    bit<9> ingress_port;
    bit<9> egress_spec;
    bit<9> egress_port;
    bit<32> instance_type;
    bit<32> packet_length;
    bit<32> enq_timestamp;
    bit<19> enq_qdepth;
    bit<32> deq_timedelta;
    bit<19> deq_qdepth;
    bit<48> ingress_global_timestamp;
    bit<48> egress_global_timestamp;
    bit<16> mcast_grp;
    bit<16> egress_rid;
    bit<1> checksum_error;
    bit<32> parser_error;
    bit<3> priority;
}

// What calls of externs leave for the path. Of several calls the last one counts.
struct notes_t {
    bit<32> session;
    bit<32> clone_list;
    bit<32> resubmit_list;
    bit<32> recirculate_list;
    bit<32> length;             // the most bytes that leave
    bool cloned;
    bool resubmitted;
    bool recirculated;
    bool truncated;
    bit<1> checksum_error;
}

struct packet_t {
    headers_t hdr;
    metadata_t meta;
    standard_metadata_t standard;
    notes_t notes;
}

// Copy the metadata fields of a list (arch/v1model/field_lists.py).
extern void preserve(in bit<32> list, in metadata_t meta, in standard_metadata_t standard,
                     inout metadata_t kept, inout standard_metadata_t kept_standard);

control ingress(in bytes_t bytes, in bit<32> port, in bit<32> kind, in bit<32> passes,
                in bit<32> list, in metadata_t meta, in standard_metadata_t standard) {
    packet_t p;
    packet_t twin;
    apply {
        begin(p, bytes);
        if (kind != NORMAL) {
            preserve(list, meta, standard, p.meta, p.standard);
        }
        p.standard.instance_type = kind;
        p.standard.packet_length = size(bytes);
        if (kind == NORMAL) {
            p.standard.ingress_port = (bit<9>) port;
            p.standard.ingress_global_timestamp = (bit<48>) microseconds();
        }
        enter("parser");
        bit<32> code = run("p", p.hdr, p.meta, p.standard);
        p.standard.parser_error = code == 0 ? no_error() : code;
        if (code != 0) {
            rejected(code);
        }
        run("vr", p.hdr, p.meta);
        p.standard.checksum_error = p.notes.checksum_error;
        enter("ingress");
        run("ig", p.hdr, p.meta, p.standard);

        if (p.notes.cloned) {       // as it arrived: it is parsed anew
            begin(twin, bytes);
            twin.standard.ingress_port = (bit<9>) port;
            if (has_session(p.notes.session)) {
                enter("parser, for the clone to session {}", p.notes.session);
                run("p", twin.hdr, twin.meta, twin.standard);
            }
            session_t s = session(p.notes.session, passes);
            if (s.exists) {
                twin.meta = {...};
                twin.standard = {...};
                preserve(p.notes.clone_list, p.meta, p.standard, twin.meta, twin.standard);
                twin.standard.instance_type = INGRESS_CLONE;
                twin.notes.truncated = s.truncate != 0;
                twin.notes.length = s.truncate;
                for (bit<32> i = 0; i < s.count; i = i + 1) {
                    replica_t r = replica(s.first + i);
                    enqueue(r.port, (bit<32>) twin.standard.priority, twin, r.port, r.instance,
                            passes + 1);
                }
            }
        }
        send_digests(p);

        if (p.notes.resubmitted) {
            bit<32> preserved = p.notes.resubmit_list;
            if (preserved == NO_LIST) {
                note("resubmitted");
            } else if (preserved < NAMED) {
                note("resubmitted, preserving field list {}", preserved);
            } else {
                note("resubmitted, preserving fields");
            }
            again(RESUBMITTED, 0, passes, bytes, preserved, p.meta, p.standard);
            return;
        }
        if (p.standard.mcast_grp != 0) {
            members_t m = members((bit<32>) p.standard.mcast_grp);
            p.notes = {...};        // as in simple_switch: replicas are not truncated
            p.standard.instance_type = REPLICATED;
            for (bit<32> i = 0; i < m.count; i = i + 1) {
                replica_t r = replica(m.first + i);
                enqueue(r.port, (bit<32>) p.standard.priority, p, r.port, r.instance, passes);
            }
            return;
        }
        bit<32> to = (bit<32>) p.standard.egress_spec;
        if (to == drop_port()) {
            drop("ingress: egress_spec is {drop port}");
            return;
        }
        p.standard.instance_type = NORMAL;
        depart(to, (bit<32>) p.standard.priority, p, to, p.standard.egress_rid, passes);
    }
}

control egress(inout packet_t p, in bit<32> port, in bit<16> instance, in bit<32> passes) {
    packet_t twin;
    apply {
        enter("egress, port {}", port);
        times_t times = queue_times(port);
        p.standard.egress_port = (bit<9>) port;
        p.standard.egress_rid = instance;
        p.standard.egress_spec = (bit<9>) (drop_port() + 1);      // as simple_switch starts it
        p.standard.packet_length = length(p);
        p.standard.egress_global_timestamp = (bit<48>) microseconds();
        p.standard.enq_timestamp = (bit<32>) times.entered;
        p.standard.enq_qdepth = (bit<19>) times.length;
        p.standard.deq_timedelta = (bit<32>) times.waited;
        p.standard.deq_qdepth = (bit<19>) times.left;
        p.notes.cloned = false;
        run("eg", p.hdr, p.meta, p.standard);

        if (p.notes.cloned) {       // as it is now, headers included
            session_t s = session(p.notes.session, passes);
            if (s.exists) {
                copy(twin, p);
                twin.meta = {...};
                twin.standard = {...};
                twin.notes = {...};
                preserve(p.notes.clone_list, p.meta, p.standard, twin.meta, twin.standard);
                twin.standard.instance_type = EGRESS_CLONE;
                twin.notes.truncated = s.truncate != 0;
                twin.notes.length = s.truncate;
                for (bit<32> i = 0; i < s.count; i = i + 1) {
                    replica_t r = replica(s.first + i);
                    enqueue(r.port, (bit<32>) twin.standard.priority, twin, r.port, r.instance,
                            passes + 1);
                }
            }
        }
        if ((bit<32>) p.standard.egress_spec == drop_port()) {
            drop("egress: egress_spec is {drop port}");
            return;
        }
        run("ck", p.hdr, p.meta);
        if (p.notes.recirculated) {
            bytes_t whole = deparse("dep", "again", p.hdr);     // also of a packet that is truncated
            bit<32> list = p.notes.recirculate_list;
            if (list == NO_LIST) {
                note("recirculated");
            } else if (list < NAMED) {
                note("recirculated, preserving field list {}", list);
            } else {
                note("recirculated, preserving fields");
            }
            again(RECIRCULATED, 0, passes, whole, list, p.meta, p.standard);
            return;
        }
        bytes_t left = deparse("dep", "send", p.hdr);
        if (p.notes.truncated) {
            left = cut(left, p.notes.length);
        }
        send(port, left);
    }
}

// -- externs ----------------------------------------------------------------------------------------

control mark_to_drop(inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>) drop_port();
        standard.mcast_grp = 0;
    }
}

control clone(in bit<32> kind, in bit<32> session, inout notes_t notes) {
    apply {
        notes.cloned = true;
        notes.session = session;
        notes.clone_list = NO_LIST;
    }
}

control clone_preserving_field_list(in bit<32> kind, in bit<32> session, in bit<32> list,
                                    inout notes_t notes) {
    apply {
        notes.cloned = true;
        notes.session = session;
        notes.clone_list = list;
    }
}

control resubmit_preserving_field_list(in bit<32> list, inout notes_t notes) {
    apply {
        notes.resubmitted = true;
        notes.resubmit_list = list;
    }
}

control recirculate_preserving_field_list(in bit<32> list, inout notes_t notes) {
    apply {
        notes.recirculated = true;
        notes.recirculate_list = list;
    }
}

// Cut off what leaves behind so many bytes. The smallest of all lengths counts.
control truncate(in bit<32> length, inout notes_t notes) {
    apply {
        if (!notes.truncated || length < notes.length) {
            notes.length = length;
        }
        notes.truncated = true;
    }
}

control checksum_differs(inout notes_t notes) {
    apply {
        notes.checksum_error = 1;
    }
}
