// A packet's path through the toy: parser, control, deparser, out.

#include <machine.p4>

struct headers_t {}

struct toy_metadata_t {
    bit<8> in_port;
    bit<8> out_port;
    bool lost;
}

struct packet_t {
    headers_t hdr;
    toy_metadata_t meta;
}

control ingress(in bytes_t bytes, in bit<32> port, in bit<32> kind, in bit<32> passes) {
    packet_t p;
    apply {
        begin(p, bytes);
        p.meta.in_port = (bit<8>) port;
        run("parse", p.hdr, p.meta);
        run("work", p.hdr, p.meta);
        if (p.meta.lost) {
            drop("it is lost");
            return;
        }
        bytes_t left = deparse("deparse", "send", p.hdr);
        send((bit<32>) p.meta.out_port, left);
    }
}
