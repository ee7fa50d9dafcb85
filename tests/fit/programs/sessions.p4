// A firewall with states: flows are in a table with idle timeouts; the state of a flow's cell changes by what the packet's flags mean; a
// packet that does not fit the state is dropped, and too many of them raise a count of the source.
#include "architecture.p4"
struct headers_t { ethernet_t eth; ipv4_t ip; tcp_t tcp; }
struct metadata_t { bit<16> flow; bit<2> event; bit<8> before; bit<1> inside; bit<1> known; bit<16> source; bit<16> strikes; }
parser IngressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start { pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.eth);
        transition select(hdr.eth.type) { 0x0800 : ipv4; default : accept; } }
    state ipv4 { pkt.extract(hdr.ip); transition select(hdr.ip.protocol) { 6 : tcp; default : accept; } }
    state tcp { pkt.extract(hdr.tcp); transition accept; }
}
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
    action known(bit<16> n) { md.flow = n; md.known = 1; }
    @idletime_precision(6)
    table flows {
        key = { hdr.ip.src : exact; hdr.ip.dst : exact; hdr.tcp.src : exact; hdr.tcp.dst : exact; }
        actions = { known; NoAction; }
        const default_action = NoAction();
        idle_timeout = true;
        size = 32768;
    }
    action event(bit<2> n) { md.event = n; }
    table events { key = { hdr.tcp.flags : ternary; ig.ingress_port : ternary; } actions = { event; } const default_action = event(0); size = 64; }
    Register<bit<8>, bit<16>>(32768) states;
    RegisterAction<bit<8>, bit<16>, bit<8>>(states) open = { void apply(inout bit<8> v, out bit<8> r) { r = v; if (v == 0) { v = 1; } } };
    RegisterAction<bit<8>, bit<16>, bit<8>>(states) answer = { void apply(inout bit<8> v, out bit<8> r) { r = v; if (v == 1) { v = 2; } } };
    RegisterAction<bit<8>, bit<16>, bit<8>>(states) close = { void apply(inout bit<8> v, out bit<8> r) { r = v; v = 0; } };
    RegisterAction<bit<8>, bit<16>, bit<8>>(states) look = { void apply(inout bit<8> v, out bit<8> r) { r = v; } };
    action do_open() { md.before = open.execute(md.flow); }
    action do_answer() { md.before = answer.execute(md.flow); }
    action do_close() { md.before = close.execute(md.flow); }
    action do_look() { md.before = look.execute(md.flow); }
    table steps { key = { md.event : exact; } actions = { do_open; do_answer; do_close; do_look; } const default_action = do_look();
        const entries = { 1 : do_open(); 2 : do_answer(); 3 : do_close(); } size = 4; }
    action good() { }
    action bad() { dprsr.drop_ctl = 1; }
    table allowed { key = { md.event : exact; md.before : ternary; } actions = { good; bad; } const default_action = bad(); size = 32; }
    Register<bit<16>, bit<16>>(65536) strikes;
    RegisterAction<bit<16>, bit<16>, bit<16>>(strikes) strike = { void apply(inout bit<16> v, out bit<16> r) { v = v |+| 1; r = v; } };
    action source() { md.source = hash.get({ hdr.ip.src }); }
    action do_strike() { md.strikes = strike.execute(md.source); }
    action tell() { tm.copy_to_cpu = 1; }
    action forward(PortId_t port) { tm.ucast_egress_port = port; }
    table routes { key = { hdr.ip.dst : lpm; } actions = { forward; NoAction; } const default_action = NoAction(); size = 2048; }
    apply {
        if (hdr.tcp.isValid()) {
            flows.apply();
            events.apply();
            source();
            if (md.known == 1) {
                steps.apply();
                allowed.apply();
            } else if (md.event == 1) {
                tell();
            } else {
                do_strike();
                if (md.strikes > 1000) { dprsr.drop_ctl = 1; }
            }
        }
        routes.apply();
    }
}
control IngressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
parser EgressParser(packet_in pkt, out headers_t hdr, out metadata_t md, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control Egress(EGRESS_ARGS) { apply { } }
control EgressDeparser(packet_out pkt, inout headers_t hdr, in metadata_t md, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
