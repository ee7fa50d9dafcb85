// What does not read: every line marked with ! has an error, no other line has one.
#include <core.p4>
header h_t { bit<8> a; bit<8> b; }
struct M { bit<8> x; bool f; }
extern X { X<T>(T a); }  // !
extern Y { static void f(); }  // !
extern Z { void f(); }
@any error { Q }  // !
@any match_kind { q }  // !
error { R }
enum Empty { }  // !
const bit<8> = 1;  // !
const bit<8> twice = 1 +;  // !
const bit<8> control = 1;  // !
const bit<8> state = 1;
typedef bit<8>;  // !
control c(inout M m) {
    action a() { }
    table t {
        actions = { a }  // !
        default_action = a;
    }
    table u {
        const key = { m.x : exact; }  // !
        actions = { a; }
        size 3;  // !
        default_action = a;
    }
    table v {
        key = { m.x : exact; }
        actions = { a; }
        const entries = { 1 : a();
                          2 , a();  // !
                          3 : a(); }
        actions = { a; }  // !
    }
    apply {
        m.x = ;  // !
        m.x++;  // !
        m.x = m.x = 1;  // !
        if (m.f) bit<8> alone = 1;  // !
        if m.f { }  // !
        while (m.f) { }  // !
        { m.x = 8w; }  // !
        m.x &&= true;  // !
        3 = m.x;  // !
        for (bit<8> i = 0; ; i = i + 1) { }  // !
        switch (m.x) { case 1: { } }  // !
        m.x = 1;
    }
}
parser p(packet_in b, inout M m) {
    state start {
        for (bit<8> i in 1 .. 3) { }  // !
        return;  // !
        transition select(m.x) {
            1, 2: accept;  // !
            3: accept;
        }
    }
    state late { transition accept; m.x = 1; }  // !
    bit<8> variable;  // !
}
