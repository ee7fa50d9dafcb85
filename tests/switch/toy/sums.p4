#include <toy.p4>

header pair_t { bit<8> a; bit<8> b; bit<8> sum; }
struct headers_t { pair_t pair; }

parser P(packet_in packet, out headers_t h, inout toy_metadata_t m) {
    state start { packet.extract(h.pair); transition accept; }
}

control C(inout headers_t h, inout toy_metadata_t m) {
    Tally(16, TallyUnit.packets_and_bytes) seen;
    Cells<bit<8>>(16) total;
    action forward(bit<8> port) { m.out_port = port; }
    action lose() { m.lost = true; }
    table ports {
        key = { h.pair.a : exact; }
        actions = { forward; lose; }
        default_action = forward(9);
    }
    apply {
        bit<32> port = (bit<32>) m.in_port;
        seen.add(port);
        total.set(port, total.get(port) + ones(h.pair.a, h.pair.b));
        h.pair.sum = total.get(port);
        ports.apply();
    }
}

control D(packet_out packet, in headers_t h) {
    apply { packet.emit(h); }
}

Toy(P(), C(), D()) main;
