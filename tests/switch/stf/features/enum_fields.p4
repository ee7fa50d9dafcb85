// Serializable enums as header fields, keys, parameters and in select.
#include "../first.p4h"
enum bit<8> Op { Add = 1, Sub = 2 }
enum bit<16> Eth { IP = 0x800, ARP = 0x806 }
header e_t { Op op; Eth t; bit<8> r; }
struct headers_t { data_t d; e_t e; }
#define HAS_PARSER
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.d); p.extract(h.e); transition select(h.e.t) { Eth.IP: ip; Eth.ARP: arp; default: accept; } }
    state ip { m.unused = 1; transition accept; } state arp { m.unused = 2; transition accept; }
}
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action set(Op o) { h.e.op = o; }
    table t { key = { h.e.op : exact; } actions = { set; NoAction; } const entries = { Op.Add : set(Op.Sub); } }
    apply { s.egress_spec = 1; h.e.r = m.unused; t.apply(); if (h.e.op == Op.Sub) { h.e.t = Eth.ARP; } h.d.x = (bit<8>)h.e.op + Op.Sub; }
}
#include "../rest.p4h"
