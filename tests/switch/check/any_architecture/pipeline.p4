// An architecture of generic and nested packages, with parameters that a program may leave out.
#include <core.p4>

enum Unit_t { PACKETS, BYTES }
match_kind { fuzzy }
struct intrinsic_t { bit<9> port; bit<48> arrived; }

extern Register<T, I> {
    Register(bit<32> size, @optional T initial);
    T read(in I index);
    void write(in I index, in T value);
}
extern RegisterAction<T, I, R> {
    RegisterAction(Register<_, _> of);
    R execute(@optional in I index, @optional out R second);
    @synchronous(execute) abstract void apply(inout T value, @optional out R result);
}
extern Counter<W> { Counter(Unit_t unit); void count(); }
extern Hash<W> { Hash(Unit_t of); W get<D>(in D data); }
extern Rows { Rows(bit<32> size); }

parser ParserT<H, M>(packet_in packet, out H h, out M m, @optional out intrinsic_t i,
                     @optional out bit<16> unused);
control ControlT<H, M>(inout H h, inout M m, @optional in intrinsic_t i, in bit<4> n = 3);
control DeparserT<H, M>(packet_out packet, inout H h, in M m);
package Pipeline<H, M>(ParserT<H, M> p, ControlT<H, M> c, DeparserT<H, M> d);
package Switch<H0, M0, H1, M1>(Pipeline<H0, M0> first, @optional Pipeline<H1, M1> second);

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header options_t { varbit<32> one; varbit<16> two; bit<8> next; }
struct headers_t { ethernet_t ethernet; options_t options; }
struct meta_t { bit<32> index; bit<16> out_port; bit<4> kind; }

parser MyParser(packet_in packet, out headers_t h, out meta_t m, out intrinsic_t i) {
    state start {
        m = { 0, 1, 2 };
        i = { 0, 0 };
        packet.extract(h.ethernet);
        transition accept;
    }
}
control MyControl(inout headers_t h, inout meta_t m) {
    Register<bit<16>, bit<32>>(1024, 5) cells;
    RegisterAction<bit<16>, bit<32>, bit<16>>(cells) next = {
        void apply(inout bit<16> value, out bit<16> result) { result = value; value = value + 1; }
    };
    RegisterAction<bit<16>, bit<32>, bit<16>>(cells) clear = {
        void apply(inout bit<16> value) { value = 0; }
    };
    Counter<bit<32>>(Unit_t.PACKETS) counted;
    Hash<bit<16>>(Unit_t.BYTES) hash;
    action hit(bit<4> kind) { counted.count(); m.out_port = next.execute(m.index); m.kind = kind; }
    action miss() { m.out_port = hash.get({ h.ethernet.dst, h.ethernet.src, 8w1 }); }
    table hosts {
        key = { h.ethernet.dst: exact; m.kind: fuzzy; m.out_port[8:0]: ternary @name("port"); }
        actions = { hit; @defaultonly miss; }
        const default_action = miss;
        counters = counted;
        implementation = Rows(512);
        idle_timeout = 7;
        some_property = { 1, "text", true };
    }
    apply {
        switch (hosts.apply().action_run) {
            hit: { m.index = 1; }
            default: { clear.execute(2); }
        }
        if (m.kind == 3) { h.options = {#}; }
    }
}
control MyDeparser(packet_out packet, inout headers_t h, in meta_t m) {
    apply { packet.emit(h.ethernet); }
}
Pipeline(MyParser(), MyControl(), MyDeparser()) only;
Switch(only) main;
