// The primitives of packet paths and of externs that are P4 text (switch/machine/primitives.py has a
// row for each: a closure for the interpreter, machine code for the JIT).
//
// A path has two entry points. `ingress` gets an arrival: its bytes, port, kind and passes, and the
// metadata that `again` was given. `egress` gets what `enqueue` or `depart` was given, in order. A
// struct whose name ends in `packet_t` is a packet's memory: the parser's position in its bytes,
// and a program's values. Other structs with the names of a program's parameters' types stand for
// these; fields that a program's own declaration lacks are skipped.

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
extern bytes_t keep(in bytes_t bytes);                      // until the pass is over

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

// Run a deparser; return its bytes and the payload. They lie where they go to: "send", "again" (the
// next call of either takes them there without a copy) or "keep".
extern bytes_t deparse<A>(string block, string to, inout A a);
extern bytes_t deparse<A, B, C>(string block, string to, inout A a, inout B b, inout C c);
extern bytes_t deparse<A, B, C, D, E, F>(string block, string to, inout A a, inout B b,
                                         inout C c, inout D d, inout E e, inout F f);

// -- where packets go -----------------------------------------------------------------------------

extern void send(in bit<32> port, in bytes_t bytes);
extern void drop(string reason);                 // {drop port}: the number of that port
// A further pass, through ingress, when this one is over.
extern void again(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes);
extern void again<A, B>(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes,
                        in A a, in B b);
extern void again<A, B, C>(in bit<32> kind, in bit<32> port, in bit<32> passes, in bytes_t bytes,
                           in A a, in B b, in C c);
// Pass a copy on to egress, by way of the port's queue if it has one.
extern void enqueue<A, B, C, D>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c,
                                in D d);
extern void enqueue<A, B, C, D, E, F, G, H, I>(in bit<32> port, in bit<32> priority, in A a, in B b,
    in C c, in D d, in E e, in F f, in G g, in H h, in I i);
// The same with the packet itself, which ingress does not use any more.
extern void depart<A, B, C, D>(in bit<32> port, in bit<32> priority, in A a, in B b, in C c,
                               in D d);
extern void depart<A, B, C, D, E, F, G, H, I>(in bit<32> port, in bit<32> priority, in A a, in B b,
    in C c, in D d, in E e, in F f, in G g, in H h, in I i);
extern void send_digests<P>(in P packet);

// -- groups, sessions, ports ----------------------------------------------------------------------

extern members_t members(in bit<32> group);         // none: counts a drop
extern bool has_session(in bit<32> number);
extern session_t session(in bit<32> number, in bit<32> passes);
extern replica_t replica(in bit<32> number);
extern bit<32> drop_port();
extern times_t queue_times(in bit<32> port);        // in microseconds

// -- the rest -------------------------------------------------------------------------------------

extern bit<64> microseconds();
extern bit<32> no_error();                          // the code of NoError
extern void enter(string block);
extern void enter<A>(string block, in A value);  // value: in the place of {}
extern void note(string text);
extern void note<A>(string text, in A value);
extern void rejected(in bit<32> code);

#endif
