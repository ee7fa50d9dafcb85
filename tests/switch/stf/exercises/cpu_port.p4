// A switch with a controller: packet-in and packet-out headers, tables that send to the CPU, and
// copies of what they do not know.
#include "../ip.p4h"

const port_t CPU = 255;
const bit<32> CPU_SESSION = 99;

enum bit<8> reason_t { NO_ROUTE = 1, COPY = 2 }
type bit<9> port_id_t;

@controller_header("packet_in")
header packet_in_t { port_t ingress_port; bit<7> pad; reason_t reason; }

@controller_header("packet_out")
header packet_out_t { port_t egress_port; bit<6> pad; bit<1> loop; }

struct headers_t { packet_out_t out_header; packet_in_t in_header; ethernet_t ethernet; }
struct meta_t { @field_list(1) port_t from; @field_list(1, 2) reason_t reason; bit<8> lost; }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        m.from = s.ingress_port;
        transition select(s.ingress_port) { CPU: from_cpu; default: ethernet; }
    }
    state from_cpu { p.extract(h.out_header); transition ethernet; }
    state ethernet { p.extract(h.ethernet); transition accept; }
}

control V(inout headers_t h, inout meta_t m) { apply { } }

control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action to_cpu(reason_t reason) { m.reason = reason; s.egress_spec = CPU; }
    action forward(port_t port) { s.egress_spec = port; }
    action forward_and_copy(port_t port) {
        forward(port);
        m.reason = reason_t.COPY;
        m.lost = 1;
        clone_preserving_field_list(CloneType.I2E, CPU_SESSION, 1);
    }
    table stations {
        key = { h.ethernet.dst: ternary; h.ethernet.type: ternary; }
        actions = { to_cpu; forward; forward_and_copy; }
        const default_action = to_cpu(reason_t.NO_ROUTE);
    }
    apply {
        if (h.out_header.isValid() && h.out_header.loop == 0) {
            s.egress_spec = h.out_header.egress_port;
        } else {
            stations.apply();
        }
        h.out_header.setInvalid();
    }
}

control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (s.egress_port == CPU) {
            h.in_header = { m.from, 0, (reason_t) ((bit<8>) m.reason | m.lost << 7) };
        }
    }
}

control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.in_header); p.emit(h.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
