// The toy architecture: one parser, one control, one deparser.

#ifndef _TOY_P4_
#define _TOY_P4_

#include <core.p4>

struct toy_metadata_t {
    bit<8> in_port;
    bit<8> out_port;
    bool lost;          // true: the packet is dropped
}

enum TallyUnit { packets, bytes, packets_and_bytes }

extern Tally {
    Tally(bit<32> size, TallyUnit unit);
    void add(in bit<32> index);
}

extern Cells<T> {
    Cells(bit<32> size);
    T get(in bit<32> index);
    void set(in bit<32> index, in T value);
}

// The sum of both arguments' bits.
extern bit<8> ones(in bit<8> a, in bit<8> b);

parser ToyParser<H>(packet_in packet, out H headers, inout toy_metadata_t meta);
control ToyControl<H>(inout H headers, inout toy_metadata_t meta);
control ToyDeparser<H>(packet_out packet, in H headers);
package Toy<H>(ToyParser<H> parse, ToyControl<H> work, ToyDeparser<H> deparse);

#endif
