// The primitives of packet paths and of externs that are P4 text (switch/machine/primitives.py has a
// row for each: a closure for the interpreter, machine code for the JIT).
//
// A path has two entry points. `ingress` gets an arrival: its bytes, port, kind and passes, and the
// metadata that `again` was given. `egress` gets what `enqueue` or `depart` was given, in order. If
// there is a third, `queue_changed`, it gets a queue's port, priority and new length. A struct whose
// name ends in `packet_t` is a packet's memory: the parser's position in its bytes, and a program's
// values. Other structs with the names of a program's parameters' types stand for these; fields that
// a program's own declaration lacks are skipped.

#ifndef _MACHINE_P4_
#define _MACHINE_P4_

#include <core.p4>

struct bytes_t { bit<64> address; bit<64> size; }
struct members_t { bit<32> first; bit<32> count; }
struct replica_t { bit<32> port; bit<16> instance; bit<32> exclusion; }
struct session_t { bool exists; bit<32> first; bit<32> count; bit<32> truncate; bit<32> service; }
struct times_t { bit<64> entered; bit<32> length; bit<64> waited; bit<32> left; }

// -- packets and their bytes ----------------------------------------------------------------------

extern void begin<P>(inout P packet, in bytes_t bytes);     // not parsed, all values zero
extern void copy<P>(inout P packet, in P from);
extern bit<32> length<P>(in P packet);                      // with what setValid made longer
extern bit<32> size(in bytes_t bytes);
extern bytes_t cut(in bytes_t bytes, in bit<32> most);
extern bytes_t nothing();
extern bytes_t keep(in bytes_t bytes);                      // until the pass is over
extern bytes_t joined(in bytes_t first, in bytes_t rest);   // kept, too
extern bytes_t encoded<H>(in H fields);                     // likewise, in the bodies of externs
// Put a header in front of bytes that are kept, or were enqueued when they were: they lie behind
// room for it. What was in front before is lost.
extern bytes_t behind<H>(in H front, in bytes_t bytes);
extern H read<H>(in bytes_t bytes);                         // with zeros behind the bytes' end
extern void measure<P>(inout P packet, in bit<32> length);  // which counters and meters measure

// -- the program's blocks -------------------------------------------------------------------------

// Run the block that is the package's argument of this name; return a parser's error, 0 for none.
extern bit<32> run<A>(string block, inout A a);
extern bit<32> run<A, B>(string block, inout A a, inout B b);
extern bit<32> run<A, B, C>(string block, inout A a, inout B b, inout C c);
extern bit<32> run<A, B, C, D>(string block, inout A a, inout B b, inout C c, inout D d);
extern bit<32> run<A, B, C, D, E>(string block, inout A a, inout B b, inout C c, inout D d,
                                  inout E e);
extern bit<32> run<A, B, C, D, E, F>(string block, inout A a, inout B b, inout C c, inout D d,
                                     inout E e, inout F f);

extern bit<32> run<A, B, C, D, E, F, G>(string block, inout A a, inout B b, inout C c, inout D d,
                                        inout E e, inout F f, inout G g);
// Run one of several blocks with a common name: "p", "p1", "p2". A block may take fewer of the
// values: those whose types have the names of its parameters' types.
extern bit<32> run_one<A, B, C, D, E>(string block, in bit<32> number, inout A a, inout B b,
                                      inout C c, inout D d, inout E e);

// Run a deparser; return its bytes and the payload. They lie where they go to: "send", "again" (the
// next call of either takes them there without a copy) or "keep".
extern bytes_t deparse<A>(string block, string to, inout A a);
extern bytes_t deparse<A, B, C>(string block, string to, inout A a, inout B b, inout C c);
extern bytes_t deparse<A, B, C, D>(string block, string to, inout A a, inout B b, inout C c,
                                   inout D d);
extern bytes_t deparse<A, B, C, D, E>(string block, string to, inout A a, inout B b, inout C c,
                                      inout D d, inout E e);
extern bytes_t deparse<A, B, C, D, E, F>(string block, string to, inout A a, inout B b,
                                         inout C c, inout D d, inout E e, inout F f);

// -- where packets go -----------------------------------------------------------------------------

extern void send(in bit<32> port, in bytes_t bytes);
extern void drop(string reason);                 // {drop port}: the number of that port
// A further pass, through ingress, when this one is over.
extern void again(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes);
extern void again<A>(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes, in A a);
extern void again<A, B>(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes,
                        in A a, in B b);
extern void again<A, B, C>(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes,
                           in A a, in B b, in C c);
// Pass a copy on to egress, by way of the port's queue if it has one: the values of egress's
// parameters, one of which is `port`.
extern void enqueue<A>(in bit<32> port, in bit<32> priority, in A a);
extern void enqueue<A, B>(in bit<32> port, in bit<32> priority, in A a, in B b);
extern void enqueue<A, B, C>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c);
extern void enqueue<A, B, C, D>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c, in D
    d);
extern void enqueue<A, B, C, D, E>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c, in
    D d, in E e);
extern void enqueue<A, B, C, D, E, F>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c,
    in D d, in E e, in F f);
extern void enqueue<A, B, C, D, E, F, G>(in bit<32> port, in bit<32> priority, in A a, in B b, in C
    c, in D d, in E e, in F f, in G g);
extern void enqueue<A, B, C, D, E, F, G, H>(in bit<32> port, in bit<32> priority, in A a, in B b, in
    C c, in D d, in E e, in F f, in G g, in H h);
extern void enqueue<A, B, C, D, E, F, G, H, I>(in bit<32> port, in bit<32> priority, in A a, in B b,
    in C c, in D d, in E e, in F f, in G g, in H h, in I i);
// The same with the packet itself, which ingress does not use any more.
extern void depart<A>(in bit<32> port, in bit<32> priority, in A a);
extern void depart<A, B>(in bit<32> port, in bit<32> priority, in A a, in B b);
extern void depart<A, B, C>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c);
extern void depart<A, B, C, D>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c, in D
    d);
extern void depart<A, B, C, D, E>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c, in D
    d, in E e);
extern void depart<A, B, C, D, E, F>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c,
    in D d, in E e, in F f);
extern void depart<A, B, C, D, E, F, G>(in bit<32> port, in bit<32> priority, in A a, in B b, in C
    c, in D d, in E e, in F f, in G g);
extern void depart<A, B, C, D, E, F, G, H>(in bit<32> port, in bit<32> priority, in A a, in B b, in
    C c, in D d, in E e, in F f, in G g, in H h);
extern void depart<A, B, C, D, E, F, G, H, I>(in bit<32> port, in bit<32> priority, in A a, in B b,
    in C c, in D d, in E e, in F f, in G g, in H h, in I i);
// Run another control of the text.
extern void call<A>(string entry, in A a);
extern void call<A, B>(string entry, in A a, in B b);
extern void call<A, B, C>(string entry, in A a, in B b, in C c);
extern void call<A, B, C, D>(string entry, in A a, in B b, in C c, in D d);
extern void call<A, B, C, D, E>(string entry, in A a, in B b, in C c, in D d, in E e);
extern void call<A, B, C, D, E, F>(string entry, in A a, in B b, in C c, in D d, in E e, in F f);
extern void send_digests<P>(in P packet);
extern void send_digests<P>(in P packet, in bit<32> pipe);      // that it came by
extern void report_returned(in bit<32> port, in bytes_t bytes); // to whom asked for it

// -- groups, sessions, ports ----------------------------------------------------------------------

extern members_t members(in bit<32> group);         // none: counts a drop
extern bool has_members(in bit<32> group);
extern bool has_session(in bit<32> number);
extern session_t session(in bit<32> number, in bit<32> passes);
extern replica_t replica(in bit<32> number);
extern bit<32> drop_port();
extern bit<32> cpu_port();                          // all ones: none was chosen
extern bit<32> global_rid();                        // that stands for all; all ones: none
extern bool pruned(in bit<32> exclusion, in bit<32> port);      // a level 2 exclusion id
extern bool leads_back(in bit<32> port);            // packets that leave there come back
extern bytes_t port_metadata(in bit<32> port);
extern times_t queue_times(in bit<32> port);        // in microseconds

// -- the rest -------------------------------------------------------------------------------------

extern bit<64> microseconds();
extern bit<64> nanoseconds();
extern bit<32> no_error();                          // the code of NoError
extern void enter(string block);
extern void enter<A>(string block, in A value);  // value: in the place of {}
extern void note(string text);
extern void note<A>(string text, in A value);
extern void rejected(in bit<32> code);

#endif
