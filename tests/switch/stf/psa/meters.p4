// Meters without a config: every packet is green, whatever it was before.
#include "first.p4h"
struct headers_t { data_t d; }
bit<8> colour_number(in PSA_MeterColor_t colour) {
    if (colour == PSA_MeterColor_t.RED) { return 0; }
    if (colour == PSA_MeterColor_t.GREEN) { return 1; }
    return 2;
}
#define HAS_INGRESS
INGRESS(ingress) {
    Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) by_op;
    DirectMeter(PSA_MeterType_t.BYTES) by_entry;
    PSA_MeterColor_t colour = PSA_MeterColor_t.YELLOW;
    action metered() { colour = by_entry.execute(); }
    action known() { colour = by_entry.execute(PSA_MeterColor_t.RED); }
    action unmetered() { }
    table rates {
        key = { h.d.x : exact; }
        actions = { metered; known; unmetered; }
        default_action = unmetered();
        psa_direct_meter = by_entry;
    }
    apply {
        send_to_port(o, (PortId_t) 1);
        rates.apply();
        h.d.y = colour_number(colour);
        colour = by_op.execute(h.d.op);
        h.d.z = colour_number(colour);
        colour = by_op.execute(h.d.op, PSA_MeterColor_t.YELLOW);
        h.d.w[15:8] = colour_number(colour);
        colour = by_op.execute(8w9, colour);
        h.d.w[7:0] = colour_number(colour);
    }
}
#include "rest.p4h"
