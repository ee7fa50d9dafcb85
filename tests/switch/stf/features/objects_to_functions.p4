// Functions take the packet, counters and registers, and give them on to other functions.
#include "../first.p4h"
struct headers_t { data_t d; data_t more; }
bit<8> next(packet_in p, out data_t d) {
    p.extract(d);
    if (d.op == 9) { d.z = p.lookahead<bit<8>>(); }
    return d.op;
}
void note(counter c, register<bit<8>> last, inout bit<8> x) {
    c.count((bit<32>) x[1:0]);
    last.read(x, 0);
    last.write(0, x + 1);
}
void note_twice(counter c, register<bit<8>> last, inout bit<8> x) { note(c, last, x); note(c, last, x); }
void hit(direct_counter c) { c.count(); }
void send(packet_out p, in data_t d) { p.emit(d); }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition select(next(p, h.d)) { 9: more; default: accept; } }
    state more { next(p, h.more); transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    counter(4, CounterType.packets) once;
    counter(4, CounterType.packets) twice;
    register<bit<8>>(1) last;
    direct_counter(CounterType.packets) hits;
    action pass(bit<9> port) { s.egress_spec = port; hit(hits); }
    table t { key = { h.d.op : exact; } actions = { pass; } counters = hits; }
    apply { s.egress_spec = 1; t.apply(); note(once, last, h.d.x); note_twice(twice, last, h.d.y); }
}
#define HAS_DEPARSER
control D(packet_out p, in headers_t h) { apply { send(p, h.d); send(p, h.more); } }
#include "../rest.p4h"
