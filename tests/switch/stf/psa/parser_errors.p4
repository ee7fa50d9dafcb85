// A parser error is available to the next control: in ingress, and for each copy in egress.
#include "first.p4h"
error { BadOp, BadSum }
header tail_t { bit<16> sum; }
struct headers_t { data_t d; tail_t tail; }

#define HAS_INGRESS_PARSER
INGRESS_PARSER(IngressParserImpl) {
    state start {
        p.extract(h.d);
        verify(h.d.op != 9, error.BadOp);
        transition select(h.d.op) {
            1: tail;
            0: accept;
        }
    }
    state tail { p.extract(h.tail); transition accept; }
}

#define HAS_INGRESS
INGRESS(ingress) {
    action seen(bit<8> number) { h.d.y = number; }
    table errors {
        key = { s.parser_error : exact; }
        actions = { seen; }
        const default_action = seen(0xff);
        const entries = {
            error.NoError : seen(1);
            error.PacketTooShort : seen(2);
            error.NoMatch : seen(3);
            error.BadOp : seen(4);
        }
    }
    apply {
        errors.apply();
        send_to_port(o, (PortId_t) 1);
    }
}

#define HAS_EGRESS_PARSER
EGRESS_PARSER(EgressParserImpl) {
    state start {
        p.extract(h.d);
        verify(h.d.z != 7, error.BadSum);
        transition accept;
    }
}

#define HAS_EGRESS
EGRESS(egress) {
    apply { if (s.parser_error == error.BadSum) { h.d.w = 0xbad; } }
}
#include "rest.p4h"
