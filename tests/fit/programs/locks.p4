// A lock manager: a lock's owner and the number of those who share it are two cells; requests are granted or queued at a server.
#define METADATA bit<32> owner; bit<32> sharers; bit<16> lock; bit<1> granted; bit<8> step;
#define WORDS bit<8> op; bit<8> mode; bit<16> client; bit<32> lock; bit<32> transaction;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    action lock(bit<16> n) { md.lock = n; }
    action to_server(PortId_t port) { tm.ucast_egress_port = port; exit; }
    table locks { key = { hdr.words.lock : exact; } actions = { lock; to_server; } const default_action = to_server(64); size = 65536; }
    Register<bit<32>, bit<16>>(65536) owners;
    RegisterAction<bit<32>, bit<16>, bit<32>>(owners) take = { void apply(inout bit<32> v, out bit<32> r) { r = v; if (v == 0) { v = hdr.words.transaction; } } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(owners) give = { void apply(inout bit<32> v, out bit<32> r) { r = v; if (v == hdr.words.transaction) { v = 0; } } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(owners) look = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    Register<bit<32>, bit<16>>(65536) shared;
    RegisterAction<bit<32>, bit<16>, bit<32>>(shared) join = { void apply(inout bit<32> v, out bit<32> r) { v = v + 1; r = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(shared) leave = { void apply(inout bit<32> v, out bit<32> r) { if (v > 0) { v = v - 1; } r = v; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(shared) many = { void apply(inout bit<32> v, out bit<32> r) { r = v; } };
    action do_take() { md.owner = take.execute(md.lock); }
    action do_give() { md.owner = give.execute(md.lock); }
    action do_look() { md.owner = look.execute(md.lock); }
    table first { key = { hdr.words.op : exact; hdr.words.mode : exact; } actions = { do_take; do_give; do_look; NoAction; } const default_action = NoAction();
        const entries = { (1, 1) : do_take(); (2, 1) : do_give(); (1, 2) : do_look(); } size = 8; }
    action do_join() { md.sharers = join.execute(md.lock); }
    action do_leave() { md.sharers = leave.execute(md.lock); }
    action do_many() { md.sharers = many.execute(md.lock); }
    table second { key = { hdr.words.op : exact; hdr.words.mode : exact; md.owner : ternary; } actions = { do_join; do_leave; do_many; NoAction; } const default_action = NoAction();
        const entries = { (1, 2, 0) : do_join(); (2, 2, _) : do_leave(); (1, 1, _) : do_many(); } size = 8; }
    action grant() { md.granted = 1; hdr.words.op = 3; tm.ucast_egress_port = ig.ingress_port; }
    action queue() { hdr.words.op = 4; tm.ucast_egress_port = 64; }
    table answers { key = { hdr.words.op : exact; hdr.words.mode : exact; md.owner : ternary; md.sharers : ternary; } actions = { grant; queue; } const default_action = queue(); size = 16; }
    action turn() { bit<32> a = hdr.ip.src; hdr.ip.src = hdr.ip.dst; hdr.ip.dst = a; bit<48> m = hdr.eth.src; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = m; }
    apply {
        if (hdr.words.isValid()) {
            locks.apply();
            first.apply();
            second.apply();
            answers.apply();
            if (md.granted == 1) { turn(); }
        }
    }
}
#include "frame_end.p4"
