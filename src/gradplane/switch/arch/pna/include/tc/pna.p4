// The Portable NIC Architecture under the name that p4c keeps it by for Linux's traffic control:
// version 0.7, and functions of the kernel's buffer of a packet, which run where a file of Python
// implements them (docs/switch.md, "User-defined externs").
#ifndef _TC_PNA_P4_
#define _TC_PNA_P4_

#include <bmv2/pna.p4>

extern void skb_get_meta();
extern void skb_set_meta();
extern bit<64> skb_get_tstamp();
extern bit<32> skb_get_mark();
extern bit<16> skb_get_tc_classid();
extern bit<16> skb_get_tc_index();
extern bit<16> skb_get_queue_mapping();
extern bit<16> skb_get_protocol();
extern bit<1> skb_get_tc_at_ingress();
extern bit<1> skb_get_from_ingress();
extern void skb_set_tstamp(in bit<64> value);
extern void skb_set_mark(in bit<32> value);
extern void skb_set_tc_classid(in bit<16> value);
extern void skb_set_tc_index(in bit<16> value);
extern void skb_set_queue_mapping(in bit<16> value);
extern void skb_set_protocol(in bit<16> value);

#endif
