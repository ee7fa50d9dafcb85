// Round-trip times: the time of a segment by its flow and the number that will acknowledge it; their distribution by subnet.
#define METADATA bit<32> now; bit<32> then; bit<32> rtt; bit<16> place; bit<32> expected; bit<6> bin; bit<8> net; bit<1> ack;
#define WORDS bit<32> seq; bit<32> ack; bit<4> offset; bit<6> flags; bit<6> rest; bit<16> window;
#include "frame.p4"
control Ingress(INGRESS_ARGS) {
    Hash<bit<16>>(HashAlgorithm_t.CRC32) sent; Hash<bit<16>>(HashAlgorithm_t.CRC32) acked;
    Register<bit<32>, bit<16>>(65536) times;
    RegisterAction<bit<32>, bit<16>, bit<32>>(times) keep = { void apply(inout bit<32> v, out bit<32> r) { v = md.now; } };
    RegisterAction<bit<32>, bit<16>, bit<32>>(times) take = { void apply(inout bit<32> v, out bit<32> r) { r = v; v = 0; } };
    Counter<bit<32>, bit<14>>(16384, CounterType_t.PACKETS) bins;
    action direction(bit<1> is_ack, bit<8> net) { md.ack = is_ack; md.net = net; }
    table directions { key = { ig.ingress_port : exact; hdr.ip.dst : lpm; } actions = { direction; NoAction; } const default_action = NoAction(); size = 256; }
    action bin(bit<6> b) { md.bin = b; }
    table widths { key = { md.rtt[31:12] : range; } actions = { bin; NoAction; } const default_action = NoAction(); size = 64; }
    action store() { keep.execute(md.place); }
    action fetch() { md.then = take.execute(md.place); }
    apply {
        if (hdr.words.isValid()) {
            md.now = (bit<32>)ig.ingress_mac_tstamp[31:0];
            md.expected = hdr.words.seq + (bit<32>)hdr.ip.length;
            directions.apply();
            if (md.ack == 0) {
                md.place = sent.get({ hdr.ip.src, hdr.ip.dst, hdr.ports.src, hdr.ports.dst, md.expected });
                store();
            } else {
                md.place = acked.get({ hdr.ip.dst, hdr.ip.src, hdr.ports.dst, hdr.ports.src, hdr.words.ack });
                fetch();
                if (md.then != 0) {
                    md.rtt = md.now - md.then;
                    widths.apply();
                    bins.count(md.net ++ md.bin);
                }
            }
        }
    }
}
#include "frame_end.p4"
