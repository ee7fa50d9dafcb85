// Declarations: every line marked with ! has an error, no other line has one.
#include <core.p4>
#include <v1model.p4>
enum E { A, B }
type bit<8> NT;
type NT NT2;
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; h_t[3] s; }
struct M { bit<8> x; bit<16> y; }
extern AB { AB(); abstract bit<8> f(in bit<8> a); }
control Called() { apply { } }
control CT();
extern E1<T> { E1(T a); void m(); }
parser PT(packet_in p);

// parameters
action default_of_out(out bit<8> q = 1) { q = 1; }  // !
action default_of_data(bit<8> q = 1) { }
action default_type(in bit<8> q = true) { }  // !
void default_unknown(in bit<8> a, in bit<8> b = a) { }  // !
extern void extern_default(out bit<8> a = 1);  // !
extern void object_with_direction(inout packet_in p);  // !
extern void object(packet_in p);
extern void block(CT c);  // !
extern void number(in int a);  // !
extern void known_number(int a);
extern void text(out string a);  // !
extern void twice(in bit<8> a, in bit<8> a);  // !
extern X1 { X1(CT c); void m(packet_in p); }
extern X2 { X2(); void m(CT c); }  // !
extern X3 { X3(bit<8> a, bit<8> a); }  // !
parser PT2(out packet_in p);  // !
control CT2(in packet_out p);  // !
control CT3(in bit<8> a, in bit<8> a);  // !
control CT4(in string a);  // !
package Pk1(bit<8> a, bit<8> a);  // !
package Pk2(CT a, PT b);

// names that are taken
void own(in bit<8> a) { bit<8> a = 1; }  // !
void inner(in bit<8> a) { { bit<8> a = 1; } }
action own_data(bit<8> a) { const bit<8> a = 1; }  // !
control generic(E1 e) { apply { e.m(); } }  // !
control specialized(E1<bit<8>> e) { apply { e.m(); } }
control reading(packet_in p, out h_t h) {
    apply {
        p.extract(h);  // !
        h = p.lookahead<h_t>();  // !
        p.advance(8);  // !
    }
}
control own_params(in bit<8> a) { apply { bit<8> a = 1; } }  // !
control hidden(in bit<8> a) { bit<8> a = 1; apply { } }

// types
struct G<T> { T<bit<8>> f; }  // !
match_kind kind() { return exact; }  // !
list<bit<8>> several() { return {1}; }  // !
const bit<16> through_two = (bit<16>) (NT) 1;  // !
const bit<16> step_by_step = (bit<16>) (bit<8>) (NT) 1;
const bit<8> from_outer = (bit<8>) (NT2) (NT) 1;
const register<bit<8>> no_object = 1;  // !

// externs and their instances
extern X4 { bit<8> X4(); }  // !
extern X5 { abstract X5(); }  // !
packet_in() made;  // !
register<int>(3) no_width;  // !
register<bit<8>>(3) with_width;
AB() no_method = { };  // !
AB() method = { bit<8> f(in bit<8> a) { return a; } };
control instances(inout M m) {
    Called() body = { };  // !
    bit<8> v;
    AB() sees_local = { bit<8> f(in bit<8> a) { return v; } };  // !
    apply {
        Called() among;  // !
        { register<bit<8>>(3) in_block; }  // !
        Called.apply();
    }
}
parser in_states(packet_in p) {
    state start { Checksum16() among; transition accept; }  // !
}

// annotations
@name("a") @name("b") const bit<8> named_twice = 1;  // !
@name(a) const bit<8> no_text = 1;  // !
@name("") const bit<8> empty_name = 1;  // !
@name("a" ++ "b") const bit<8> joined = 1;
@deprecated extern D1 { D1(); }  // !
@deprecated("use " ++ "another") extern D2 { D2(); }
@noWarn(3) action quiet() { }  // !
@hidden(1) action hide() { }  // !
@id("a") const bit<8> text_as_id = 1;  // !
@id(1) @id(2) const bit<8> two_ids = 1;  // !
error { R }
@free(form a b c) @pragma_like const bit<8> free_text = 1;
parser annotated(packet_in p) {
    @name(3) state start { @atomic(1) { } transition accept; }  // !
}
void parameter(@optional(1) in bit<8> a) { }  // !

control tables(inout H hdr, inout M m) {
    action a() { }
    action b(in bit<8> x, bit<8> y) { m.x = x + y; }
    table names_twice { key = { m.x : exact @name("k");
                                m.y : exact @name("k"); } actions = { a; } }  // !
    table names { key = { m.x : exact @name("k"); m.y : exact @name("l"); } actions = { a; } }
    table unlisted {
        actions = { a; }
        default_action = NoAction;  // !
    }
    table both { actions = { a;
                             @tableonly @defaultonly NoAction; } }  // !
    table applied { key = { names.apply().hit : exact @name("hit"); } actions = { a; } }
    table argument { actions = { b(names.apply().hit ? 8w1 : 2); } }  // !
    table priorities {
        key = { m.x : ternary; }
        actions = { a; }
        entries = {
            priority = (0 - 1) : 1 : a;  // !
            priority = 2147483648 : 2 : a;  // !
            priority = 3 : 3 : a;
        }
    }
    apply {
        if (names.apply().hit) { m.x = 1; }
        bool run = applied.apply().action_run == applied.apply().action_run;  // !
        switch ((both.apply().action_run)) { a: { } }
        for (E e in E.A .. E.B) { }  // !
    }
}
