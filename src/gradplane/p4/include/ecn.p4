// Explicit congestion notification (RFC 3168), where ECN_THRESHOLD is defined: a packet of a sender
// that knows of it is marked when it finds so many packets in its queue. A sum has the bits of its
// packets, joined by or: marked if one of them was. All senders use ECT(0).

#ifndef GRADPLANE_ECN_P4
#define GRADPLANE_ECN_P4

#ifdef ECN_THRESHOLD

typedef bit<2> ecn_t;
const ecn_t ECN_MARKED = 3;

void mark_ecn(inout ipv4_t ipv4, in bit<19> waiting) {
    if (ipv4.tos[1:0] != 0 && waiting >= ECN_THRESHOLD) {
        ipv4.tos[1:0] = ECN_MARKED;
    }
}

#endif

#endif
