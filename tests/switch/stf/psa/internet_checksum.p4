// A checksum verified where it is parsed, made anew and updated in steps where it is deparsed, and
// handed from one instance to another by its state.
#define HAS_META
#define NORMAL_T carried_t
struct carried_t { bit<16> old; bit<16> state; }
#include "first.p4h"
error { BadChecksum }
header sum_t { bit<32> a; bit<16> b; bit<16> check; }
struct headers_t { data_t d; sum_t s; }
struct meta_t { carried_t c; }

#define HAS_INGRESS_PARSER
INGRESS_PARSER(IngressParserImpl) {
    InternetChecksum() ck;
    InternetChecksum() whole;
    state start {
        p.extract(h.d);
        transition select(h.d.op) { 0: sum; 1: sum; default: accept; }
    }
    state sum {
        p.extract(h.s);
        ck.add({ h.s.a, h.s.b });
        m.c.state = ck.get_state();
        whole.set_state(ck.get_state());
        whole.add(h.s.check);
        verify(ck.get() == h.s.check && whole.get() == 0, error.BadChecksum);
        transition accept;
    }
}

#define HAS_INGRESS
INGRESS(ingress) {
    apply {
        send_to_port(o, (PortId_t) 1);
        m.c.old = h.s.b;
        h.s.b = h.d.w;
        if (s.parser_error == error.BadChecksum) { h.d.z = 0xbb; }
    }
}

#define HAS_INGRESS_DEPARSER
INGRESS_DEPARSER(IngressDeparserImpl) {
    apply { normal = m.c; p.emit(h); }
}

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start {
        p.extract(h.d);
        m.c = normal;
        transition select(h.d.op) { 0: sum; 1: sum; default: accept; }
    }
    state sum { p.extract(h.s); transition accept; }
}

#define HAS_EGRESS_DEPARSER
EGRESS_DEPARSER(EgressDeparserImpl) {
    InternetChecksum() ck;
    apply {
        if (h.d.op == 0) {          // anew
            ck.add(h.s.a);
            ck.clear();
            ck.add({ h.s.a, h.s.b });
        } else if (h.d.op == 1) {   // what has changed
            ck.set_state(m.c.state);
            ck.subtract(m.c.old);
            ck.add(h.s.b);
        }
        h.s.check = ck.get();
        h.d.w = ck.get_state();
        p.emit(h);
    }
}
#include "rest.p4h"
