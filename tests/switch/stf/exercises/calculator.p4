// A calculator that answers to the sender.
#include "../ip.p4h"
const bit<16> ETHERTYPE_CALC = 0x1234;
header calc_t { bit<8> p; bit<8> four; bit<8> version; bit<8> op; bit<32> a; bit<32> b; bit<32> result; }
struct headers_t { ethernet_t ethernet; calc_t calc; }
struct meta_t { }

#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) { ETHERTYPE_CALC: check; default: accept; }
    }
    state check {
        transition select(p.lookahead<calc_t>().p, p.lookahead<calc_t>().four, p.lookahead<calc_t>().version) {
            (0x50, 0x34, 0x01): calc;
            default: accept;
        }
    }
    state calc { p.extract(h.calc); transition accept; }
}

#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action answer(bit<32> result) {
        mac_t mac = h.ethernet.dst;
        h.ethernet.dst = h.ethernet.src;
        h.ethernet.src = mac;
        h.calc.result = result;
        s.egress_spec = s.ingress_port;
    }
    action add() { answer(h.calc.a + h.calc.b); }
    action sub() { answer(h.calc.a - h.calc.b); }
    action and() { answer(h.calc.a & h.calc.b); }
    action or() { answer(h.calc.a | h.calc.b); }
    action xor() { answer(h.calc.a ^ h.calc.b); }
    action drop() { mark_to_drop(s); }
    table calculate {
        key = { h.calc.op : exact @name("operation"); }
        actions = { add; sub; and; or; xor; drop; }
        const default_action = drop();
        const entries = { 0x2b : add(); 0x2d : sub(); 0x26 : and(); 0x7c : or(); 0x5e : xor(); }
    }
    apply { if (h.calc.isValid()) { calculate.apply(); } else { drop(); } }
}
#include "../rest.p4h"
