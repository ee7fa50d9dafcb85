// In-network aggregation in memory that jobs share (after ATP, NSDI '21), of THC's codes.
//
// No job owns slots: a packet's slot is a hash of its job, and of the slot and round that number its
// chunk. Each job has a server, which gives the results; the switch takes off it what it can:
//
//   the slot is free              --> the packet begins it
//   it has the packet's chunk     --> its values are added; all workers are in: a partial goes to the
//                                     server, and the slot is free
//   it has another chunk          --> the packet goes on to its own server; after `patience` such
//                                     packets it takes the slot, and carries the content away as a
//                                     partial, to that job's server
//   the packet is direct (sent again) --> it goes on to the server, and is never added; if its
//                                     worker is in the slot, it carries the content, and the slot is free
//
// So a slot may be lost at any time: the workers' timers bring what was in it to the server. All that
// is not codes goes on to the server, too, and the server's answers to all workers, or to one:
//
//   job worker port --> members --> all workers' bits, own bit, slots, patience   (never from the packet)
//   job             --> servers --> the port to the job's server
//   job port hop    --> answers --> the group of all workers (hop 0), or the port of worker hop - 1
//   slot, pass      --> cell    --> epoch, job, slot and round; bitmap; 128 sums
//
// A packet decides in its first pass what it does, and carries that through the others. In each, the
// cell's own tag and bitmap say what is in its sums; where a cell is not as the first one was, since
// others were between or lost, a packet leaves it alone and is dropped in the end.

#include <core.p4>
#include <v1model.p4>

#define SHARES_SLOTS
#include "include/v1model_aggregation.p4"

const bit<8> SERVER = 255;          // its number among the receivers

// Precedes a packet between two passes: what it does in each. The aggregation header is already that
// of what leaves in the end.
header recirculation_t {
    bit<9>   ingress_port;
    update_t update;        // SWAP: begins its slot; ADD; NONE: takes its content
    bit<1>   leaves;        // as a partial
    bit<1>   broken;        // some cell was not as the first one was
    bit<3>   unused;
    bit<64>  tag;           // of the packet's own chunk
    bit<64>  before;        // the bitmap that a cell must have
    bit<64>  after;         // and the one that it gets
}

struct headers_t {
    recirculation_t recirculation;
    ethernet_t      ethernet;
    ipv4_t          ipv4;
    udp_t           udp;
    aggregation_t   agg;
    done_t[PASSES - 1] done;
    sums_t          sums;
    codes_t         codes;
}

struct metadata_t {
    verdict_t verdict;
    bit<1>  local;          // addressed to the switch itself
    bit<1>  again;          // after an earlier pass
    bit<8>  passes_left;    // parser: results of earlier passes still to extract
    bit<9>  port;           // ingress port, before any recirculation
    bit<8>  job;            // of the packet's own chunk
    bit<8>  receiver;

    // of the sender, from the table of members
    bit<1>  member;
    bit<64> everyone;
    bit<64> bit_of_worker;
    bit<16> slots;          // that number the job's chunks
    bit<8>  epoch;
    bit<8>  patience;

    bit<1>  from_server;
    bit<16> group;

    bit<32> slot;
    bit<32> cell;
    bit<64> tag;            // epoch 8, job 8, slot 16, round 32
    bit<64> before;
    bit<64> after;
    update_t update;
    bit<1>  leaves;
    bit<1>  broken;
    event_t event;
}

parser ThcParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
#include "include/v1model_parser.p4"

    state parse_aggregation {
        packet.extract(hdr.agg);
        meta.passes_left = hdr.agg.pass;
        transition select(hdr.agg.type, meta.again) {
            (TYPE_CODES, 1): parse_earlier;
            (TYPE_CODES, 0): parse_codes;
            default: accept;
        }
    }
    state parse_earlier {
        transition select(meta.passes_left) {
            0: parse_codes;
            default: parse_done;
        }
    }
    state parse_done {
        packet.extract(hdr.done.next);
        meta.passes_left = meta.passes_left - 1;
        transition parse_earlier;
    }
    state parse_codes {
        packet.extract(hdr.codes);
        transition accept;
    }
}

control ThcVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control ThcIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    // For each slot and pass.
    register<bit<64>>(CELLS) cell_tag;
    register<bit<64>>(CELLS) cell_bitmap;   // 0: the cell is free

    // For each slot.
    register<bit<32>>(SLOTS) slot_norm;
    register<bit<8>>(SLOTS)  slot_others;   // packets of other chunks since the last of its own
#ifdef ECN_THRESHOLD
    register<ecn_t>(SLOTS)   slot_ecn;
#endif

    counter(4096, CounterType.packets) shared_events;
#include "include/v1model_arrivals.p4"

    // -- workers and servers -------------------------------------------------------------------

    action admit_shared(bit<64> everyone, bit<64> worker_bit, bit<16> slots, bit<8> epoch,
                        bit<8> patience, bit<16> group) {
        meta.member = 1;
        meta.everyone = everyone;
        meta.bit_of_worker = worker_bit;
        meta.slots = slots;
        meta.epoch = epoch;
        meta.patience = patience;
        meta.group = group;
    }

    table members {
        key = {
            meta.job : exact @name("job");
            hdr.agg.worker : exact @name("worker");
            meta.port : exact @name("port");
        }
        actions = { admit_shared; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    action to_server(bit<9> port) { standard_metadata.egress_spec = port; }

    // The job of a partial may have ended.
    action drop_partial() { meta.verdict = DROP; }

    table servers {
        key = { hdr.agg.job : exact @name("job"); }
        actions = { to_server; @defaultonly drop_partial; }
        const default_action = drop_partial();
        size = 256;
    }

    action pass_answer(bit<16> group, bit<9> port) {
        meta.from_server = 1;
        meta.group = group;
        meta.port = port;
    }

    table answers {
        key = {
            hdr.agg.job : exact @name("job");
            meta.port : exact @name("port");
            hdr.agg.worker : exact @name("hop");
        }
        actions = { pass_answer; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    // Of a cell.
    bit<64> tag;
    bit<64> bitmap;
    bit<32> norm;
    bit<8>  others;
    bit<1>  same;       // it is as the first one was
    update_t update;
    bit<16> check;      // of the header: 0 if its checksum is right

    // The slot's number comes last: a CRC sends numbers that differ in their last bits apart.
    action find_slot() {
        hash(meta.slot, HashAlgorithm.crc32, 32w0, { hdr.agg.job, hdr.agg.round, hdr.agg.slot },
             32w0 + SLOTS);
    }

    action do_to_slot(update_t what, bit<64> after, bit<1> leaves) {
        meta.verdict = RECIRCULATE;
        meta.update = what;
        meta.before = bitmap;
        meta.after = after;
        meta.leaves = leaves;
    }

    apply {
        check = 0;
        mark_to_drop(standard_metadata);
        meta.port = standard_metadata.ingress_port;
        if (hdr.recirculation.isValid()) {
            meta.port = hdr.recirculation.ingress_port;
            meta.tag = hdr.recirculation.tag;
            meta.job = meta.tag[55:48];
            meta.before = hdr.recirculation.before;
            meta.after = hdr.recirculation.after;
            meta.update = hdr.recirculation.update;
            meta.leaves = hdr.recirculation.leaves;
            meta.broken = hdr.recirculation.broken;
            meta.local = 1;
        } else {
            port_in.count((bit<32>) standard_metadata.ingress_port);
            if (hdr.agg.isValid()) {
                meta.job = hdr.agg.job;
                meta.tag = hdr.agg.epoch ++ hdr.agg.job ++ hdr.agg.slot ++ hdr.agg.round;
                hash(check, HashAlgorithm.csum16, 16w0, { HEADER_FIELDS, hdr.agg.checksum },
                     32w65536);
            }
            if (check != 0) {
                damaged.count((bit<32>) standard_metadata.ingress_port);
            } else if (hdr.ipv4.isValid() && standard_metadata.checksum_error == 0
                    && hdr.ipv4.ttl != 0) {
                routes.apply();
                if (meta.local == 1 && hdr.udp.isValid() && !hdr.agg.isValid()
                        && hdr.udp.dst_port == AGGREGATION_PORT) {
                    other_version.count((bit<32>) standard_metadata.ingress_port);
                }
            }
        }

        if (meta.local == 1 && hdr.agg.isValid()) {
            members.apply();
            meta.event = EVENT_UNKNOWN_TYPE;
            if (meta.member == 0) {
                if (!hdr.recirculation.isValid()) {
                    answers.apply();
                }
                if (meta.from_server == 0) {
                    unknown_member.count(0);
                } else if (hdr.agg.pass != 0) {
                    meta.event = EVENT_SPOOFED_PASS;
                } else if (hdr.agg.sum_bits != SUM_BITS || hdr.agg.code_bits != CODE_BITS
                        || (hdr.agg.flags != 0 && hdr.agg.type != TYPE_STATUS)
                        || (bit<32>) hdr.ipv4.total_length + 14 != standard_metadata.packet_length
                        || hdr.udp.length + IPV4_BYTES != hdr.ipv4.total_length
                        || hdr.ipv4.total_length != IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES
                            + (hdr.agg.type == TYPE_SUMS ? 16w0 + SUMS_BYTES : 16w0)) {
                    meta.event = EVENT_BAD_FORMAT;
                } else if (hdr.agg.type == TYPE_SUMS || hdr.agg.type == TYPE_NORM_RESULT
                        || hdr.agg.type == TYPE_STRAGGLER || hdr.agg.type == TYPE_STATUS
                        || hdr.agg.type == TYPE_EPOCH) {
                    meta.event = EVENT_PASSED_DOWN;
                    meta.verdict = hdr.agg.worker == 0 ? MULTICAST : ANSWER;
                    meta.receiver = hdr.agg.worker - 1;
                    hdr.agg.worker = 0;
                }
            } else if (hdr.recirculation.isValid()) {
                if (meta.tag[63:56] == meta.epoch) {
                    meta.verdict = RECIRCULATE;
                } else {
                    meta.event = EVENT_OTHER_EPOCH;
                }
            } else if (hdr.agg.pass != 0) {
                meta.event = EVENT_SPOOFED_PASS;
            } else if (hdr.agg.slot >= meta.slots) {
                meta.event = EVENT_BAD_SLOT;
            } else if (standard_metadata.parser_error != error.NoError
                    || hdr.agg.sum_bits != SUM_BITS || hdr.agg.code_bits != CODE_BITS
                    || (hdr.agg.flags != 0
                        && (hdr.agg.type != TYPE_CODES || hdr.agg.flags != FLAG_DIRECT)
                        && (hdr.agg.type != TYPE_STATUS || hdr.agg.flags != FLAG_NORM))
                    || (bit<32>) hdr.ipv4.total_length + 14 != standard_metadata.packet_length
                    || hdr.udp.length + IPV4_BYTES != hdr.ipv4.total_length
                    || hdr.ipv4.total_length != IPV4_BYTES + UDP_BYTES + AGGREGATION_BYTES
                        + (hdr.agg.type == TYPE_CODES ? 16w0 + CODES_BYTES : 16w0)) {
                meta.event = EVENT_BAD_FORMAT;
            } else if (hdr.agg.type == TYPE_NORM || hdr.agg.type == TYPE_STATUS) {
                meta.event = hdr.agg.type == TYPE_NORM ? EVENT_NORM : EVENT_STATUS;
                meta.verdict = UP;
            } else if (hdr.agg.type == TYPE_CODES && hdr.agg.epoch != meta.epoch) {
                meta.event = EVENT_OTHER_EPOCH;
                meta.verdict = UP;
            } else if (hdr.agg.type == TYPE_CODES) {
                find_slot();
                cell_tag.read(tag, meta.slot * PASSES);
                cell_bitmap.read(bitmap, meta.slot * PASSES);
                slot_norm.read(norm, meta.slot);
                slot_others.read(others, meta.slot);
                if (hdr.agg.flags == FLAG_DIRECT) {
                    meta.event = EVENT_DIRECT;
                    meta.verdict = UP;
                    if (tag == meta.tag && (bitmap & meta.bit_of_worker) != 0) {
                        meta.event = EVENT_FREED;
                        do_to_slot(UPDATE_NONE, 0, 1);
                    }
                } else if (bitmap == 0 && meta.bit_of_worker != meta.everyone) {
                    meta.event = EVENT_ACCEPTED;
                    do_to_slot(UPDATE_SWAP, meta.bit_of_worker, 0);
                } else if (tag == meta.tag && (bitmap & meta.bit_of_worker) != 0) {
                    meta.event = EVENT_DUPLICATE;
                } else if (bitmap != 0 && tag == meta.tag && norm == hdr.agg.norm) {
                    meta.event = EVENT_ACCEPTED;
                    do_to_slot(UPDATE_ADD, bitmap | meta.bit_of_worker, 0);
                    if (meta.after == meta.everyone) {
                        meta.event = EVENT_SUMS;
                        meta.after = 0;
                        meta.leaves = 1;
                    }
                } else {
                    meta.event = EVENT_TAKEN;
                    meta.verdict = UP;
                    if (others |+| 1 >= meta.patience && meta.bit_of_worker != meta.everyone) {
                        meta.event = EVENT_EVICTED;
                        do_to_slot(UPDATE_SWAP, meta.bit_of_worker, 1);
                    }
                    slot_others.write(meta.slot, others |+| 1);
                }
                // What leaves in the end, if anything does.
                if (meta.verdict == RECIRCULATE) {
                    slot_others.write(meta.slot, 0);
                    hdr.agg.bitmap = bitmap;
                    if (meta.update == UPDATE_ADD) {
                        hdr.agg.bitmap = bitmap | meta.bit_of_worker;
                    } else if (meta.update == UPDATE_SWAP) {
                        slot_norm.write(meta.slot, hdr.agg.norm);
                    }
#ifdef ECN_THRESHOLD
                    // A partial leaves with the bits of the packets in it.
                    ecn_t earlier;
                    slot_ecn.read(earlier, meta.slot);
                    if (meta.update == UPDATE_SWAP) {
                        slot_ecn.write(meta.slot, hdr.ipv4.tos[1:0]);
                        hdr.ipv4.tos[1:0] = earlier;
                    } else {
                        hdr.ipv4.tos[1:0] = hdr.ipv4.tos[1:0] | earlier;
                        slot_ecn.write(meta.slot, hdr.ipv4.tos[1:0]);
                    }
#endif
                    if (meta.update == UPDATE_SWAP && meta.leaves == 1) {
                        hdr.agg.epoch = tag[63:56];
                        hdr.agg.job = tag[55:48];
                        hdr.agg.slot = tag[47:32];
                        hdr.agg.round = tag[31:0];
                    }
                    hdr.agg.norm = norm;
                }
            }

            if (meta.verdict != RECIRCULATE || !hdr.recirculation.isValid()) {
                if (meta.member == 1 || meta.from_server == 1) {
                    shared_events.count((bit<32>) (meta.job ++ meta.event));
                }
            }
            if (meta.verdict == RECIRCULATE) {
                if (hdr.recirculation.isValid()) {
                    find_slot();    // what leaves has the packet's own
                }
                meta.cell = meta.slot * PASSES + (bit<32>) hdr.agg.pass;
                cell_tag.read(tag, meta.cell);
                cell_bitmap.read(bitmap, meta.cell);
                same = 1;
                if (hdr.agg.pass != 0 && (meta.leaves == 1 || meta.update == UPDATE_ADD)
                        && (bitmap != meta.before
                            || tag != hdr.agg.epoch ++ hdr.agg.job ++ hdr.agg.slot ++ hdr.agg.round)) {
                    meta.broken = 1;
                    same = 0;
                }
                update = meta.update;
                if (update == UPDATE_SWAP) {
                    cell_tag.write(meta.cell, meta.tag);
                    cell_bitmap.write(meta.cell, meta.after);
                } else if (same == 1) {
                    cell_bitmap.write(meta.cell, meta.after);
                } else {
                    update = UPDATE_NONE;
                }
                hdr.sums.setValid();
#define BLOCK_APPLY(n) block##n.apply(meta.job, hdr.codes.block##n, meta.cell, update, 0, hdr.sums.block##n);
                EACH_BLOCK(BLOCK_APPLY)
                hdr.codes.setInvalid();

                if (hdr.agg.pass == PASSES - 1) {
                    meta.verdict = DROP;
                    if (meta.broken == 1) {
                        shared_events.count((bit<32>) (meta.job ++ EVENT_BROKEN));
                    } else if (meta.leaves == 1) {
                        meta.verdict = UP;
                        hdr.agg.type = TYPE_PARTIAL_SUMS;
                        hdr.agg.pass = 0;
                        hdr.udp.length = UDP_BYTES + AGGREGATION_BYTES + SUMS_BYTES;
                    }
                } else {
                    hdr.agg.pass = hdr.agg.pass + 1;
                }
            }
        }

        if (meta.verdict == RECIRCULATE) {
            hdr.recirculation.setValid();
            hdr.recirculation.ingress_port = meta.port;
            hdr.recirculation.update = meta.update;
            hdr.recirculation.leaves = meta.leaves;
            hdr.recirculation.broken = meta.broken;
            hdr.recirculation.unused = 0;
            hdr.recirculation.tag = meta.tag;
            hdr.recirculation.before = meta.before;
            hdr.recirculation.after = meta.after;
            standard_metadata.egress_spec = RECIRCULATION_PORT;
#ifdef HAS_CABLE
            if (hdr.agg.pass[0:0] == 1) {
                standard_metadata.egress_spec = CABLE_OUT;
            }
#endif
        } else {
            hdr.recirculation.setInvalid();
            if (meta.verdict == MULTICAST) {
                standard_metadata.mcast_grp = meta.group;
            } else if (meta.verdict == ANSWER) {
                standard_metadata.egress_spec = meta.port;
            } else if (meta.verdict == UP) {
                servers.apply();
            }
        }
    }
}

control ThcEgress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
#include "include/v1model_deliver.p4"

    apply {
        if (meta.verdict == RECIRCULATE) {
#ifdef HAS_CABLE
            if (standard_metadata.egress_port != CABLE_OUT)
#endif
            recirculate_preserving_field_list(0);
        } else {
            if (meta.verdict >= ANSWER) {
                hdr.ipv4.ttl = 64;
                hdr.udp.src_port = AGGREGATION_PORT;
                hdr.udp.checksum = 0;
                hdr.ipv4.total_length = hdr.udp.length + IPV4_BYTES;
                if (standard_metadata.instance_type == INSTANCE_REPLICATION) {
                    meta.receiver = (bit<8>) (standard_metadata.egress_rid - 1);
                }
                if (meta.verdict == UP) {
                    meta.receiver = SERVER;
                }
                receivers.apply();
            }
#ifdef ECN_THRESHOLD
            mark_ecn(hdr.ipv4, standard_metadata.enq_qdepth);
#endif
            port_out.count((bit<32>) standard_metadata.egress_port);
        }
    }
}

control ThcCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { IPV4_FIELDS }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.verdict >= ANSWER, { HEADER_FIELDS }, hdr.agg.checksum,
            HashAlgorithm.csum16);
    }
}

control ThcDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.recirculation);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.agg);
        packet.emit(hdr.done);
        packet.emit(hdr.sums);
        packet.emit(hdr.codes);
    }
}

V1Switch(ThcParser(), ThcVerify(), ThcIngress(), ThcEgress(), ThcCompute(), ThcDeparser()) main;
