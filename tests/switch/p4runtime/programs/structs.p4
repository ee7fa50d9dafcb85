// A register whose cells are structs.
#include <core.p4>
#include <v1model.p4>

enum bit<8> Colour { RED = 1, GREEN = 2 }
struct inner_t { int<8> n; bool f; }
struct cell_t { bit<8> a; inner_t i; tuple<bit<7>> t; Colour c; }
struct empty_t { }

parser P(packet_in pkt, out empty_t h, inout empty_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout empty_t h, inout empty_t m) { apply { } }
control I(inout empty_t h, inout empty_t m, inout standard_metadata_t s) {
    register<cell_t>(2) cells;
    apply {
        cell_t c;
        cells.read(c, 0);
        cells.write(1, c);
    }
}
control E(inout empty_t h, inout empty_t m, inout standard_metadata_t s) { apply { } }
control C(inout empty_t h, inout empty_t m) { apply { } }
control D(packet_out pkt, in empty_t h) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
