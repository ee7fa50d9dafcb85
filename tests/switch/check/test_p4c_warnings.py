"""Constructs that this compiler accepts and p4c refuses get a warning of kind "p4c"."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner
from v1programs import source
from warning_case import TEMPLATE, warnings

from gradplane.cli.app import app
from gradplane.experiment import p4_programs
from gradplane.switch.compiler import compile_source
from gradplane.switch.source import CompileError

LOOP = "for (bit<8> i = 0; i < 3; i = i + 1) { m.x = m.x + i; }"
ONCE = "p4c for BMv2 does the body of a loop outside an action once"
OF_PARAMETER = "p4c has no ?: and no comparison of a constructor's parameter here"
CHAINED = "m.x = m.x == 1 ? 8w2 : m.x == 2 ? 8w3 : 8w4;"


TABLE = """action set(bit<8> v) { m.x = v; } action add(inout bit<8> x, bit<8> v) { x = x + v; }
    table t { key = { m.x : exact; } actions = { set; NoAction; } }"""
SUB = """control Sub(inout bit<8> x) {
    action set(bit<8> v) { x = v; }
    table t { key = { x : exact; } actions = { set; NoAction; } }
    apply { t.apply(); }
}"""


def bound(rest: str) -> str:
    """Return a table's action with a bound argument, and more of the table."""
    actions = "action add(inout bit<8> x, bit<8> v) { x = x + v; }"
    return f"{actions} table t {{ key = {{ m.x : exact; }} actions = {{ add(m.x); }} {rest} }}"


REFUSED = {
    "a type that an instance leaves open": (
        "c.put(hdr.h.a);",
        {"top": "extern Cell<T> { Cell(); void put(in T value); }", "locals": "Cell<_>() c;"},
        "p4c finds no type for value: this instance has _ in its place",
    ),
    "priorities of exact entries": (
        "t.apply();",
        {
            "locals": """table t { key = { m.x : exact; } actions = { NoAction; }
                entries = { priority = 3: 1: NoAction(); } }"""
        },
        "p4c takes no priorities of entries where all keys are exact or lpm",
    ),
    "entries before the key": (
        "t.apply();",
        {
            "locals": """table t { actions = { NoAction; } const entries = { 1: NoAction(); }
                key = { m.x : exact; } }"""
        },
        "p4c takes entries only behind the key",
    ),
    "list of one as a key": (
        "t.apply();",
        {"locals": "table t { key = { { m.x } : exact; } actions = { NoAction; } }"},
        "p4c takes no tuple as a key",
    ),
    "tuple of one as a key": (
        "one = { m.x }; t.apply();",
        {
            "locals": """tuple<bit<8>> one;
                table t { key = { one : exact; } actions = { NoAction; } }"""
        },
        "p4c takes no tuple as a key",
    ),
    "run-time index of an array": (
        "bit<8>[4] a = {1, 2, 3, 4}; m.x = a[m.x];",
        {},
        "p4c for BMv2 takes constant indices only of an array of bit<8>",
    ),
    "entries before the actions": (
        "t.apply();",
        {
            "locals": """table t { key = { m.x : exact; } const entries = { 1: NoAction(); }
                actions = { NoAction; } }"""
        },
        "p4c takes entries only behind the actions",
    ),
    "constant array": (
        "const bit<8>[2] c = {1, 2}; m.x = c[1];",
        {},
        "p4c has no constant arrays",
    ),
    "array compared with a list": (
        "bit<8>[2] a = {1, 2}; m.f = a == {1, 2};",
        {},
        "p4c does not compare an array with a list",
    ),
    "choice between arrays": (
        "bit<8>[2] a = {1, 2}; bit<8>[2] b = m.f ? a : (bit<8>[2]) {3, 4}; m.x = b[0];",
        {},
        "p4c for BMv2 does not choose between arrays",
    ),
    "array within a list": (
        "bit<8>[2] a = {1, 2}; bit<8>[2][2] b = {a, {3, 4}}; m.x = b[0][1];",
        {},
        "p4c for BMv2 has no arrays within a list",
    ),
    "array given to an action": (
        "bit<8>[2] a = {1, 2}; set(a);",
        {"locals": "action set(in bit<8>[2] a) { m.x = a[0]; }"},
        "p4c for BMv2 gives no bit<8>[2] to set",
    ),
    "array in what is hashed": (
        "bit<8>[2] a = {1, 2}; hash(m.x, HashAlgorithm.crc16, 8w0, {a}, 8w255);",
        {},
        "p4c for BMv2 gives no bit<8>[2] to hash",
    ),
    "array of structs with arrays": (
        "S[2] a; a[0].x[1] = m.x; a[1] = a[0]; m.x = a[1].x[1];",
        {"top": "struct S { bit<8>[2] x; }"},
        "p4c for BMv2 has no arrays of structs with bit<8>[2]",
    ),
    "array changed in a branch": (
        "bit<8>[2] a = {1, 2}; if (m.f) { a[0] = 3; } m.x = a[0];",
        {},
        "p4c for BMv2 loses a, an array that other paths or blocks use",
    ),
    "array changed in an action": (
        "t.apply(); m.x = a[0];",
        {
            "locals": """bit<8>[2] a; action set(bit<8> v) { a[0] = v; }
                table t { key = { m.x : exact; } actions = { set; NoAction; } }"""
        },
        "p4c for BMv2 loses a, an array that other paths or blocks use",
    ),
    "array of two states": (
        "",
        {
            "top": """parser Q(packet_in p, inout M m) {
                bit<8>[2] a;
                state start {
                    a[0] = m.x;
                    transition select(m.x) { 1: two; default: accept; }
                }
                state two { m.x = a[0]; transition accept; } }""",
            "transition": "one;",
            "states": "state one { Q.apply(p, m); transition accept; }",
        },
        "p4c for BMv2 loses a, an array that other paths or blocks use",
    ),
    "array of registers": (
        "r[1].write(0, 1);",
        {"locals": "register<bit<8>>[2](4) r;"},
        "p4c for BMv2 has no arrays of register<bit<8>>",
    ),
    "switch in a function that an action calls": (
        "act();",
        {
            "top": "void f(inout bit<8> x) { switch (x) { 1: { x = 2; } } }",
            "locals": "action act() { f(m.x); }",
        },
        "p4c for BMv2 has no switch statements in actions",
    ),
    "tuple as action data": (
        "t.apply();",
        {
            "locals": "action a(tuple<bit<8>> s) { m.x = s[0]; }"
            "table t { key = { m.x : exact; } actions = { a; } }"
        },
        "p4c for BMv2 takes bit<> and int<> as action data: s is of type tuple<bit<8>>",
    ),
    "parser without an end": (
        "",
        {"states": "state two { transition start; }", "transition": "two;"},
        "p4c refuses a parser that never reaches accept or reject",
    ),
    "parser without an end, by a select": (
        "",
        {"transition": "select(hdr.h.a) { 1: start; _: start; }"},
        "p4c refuses a parser that never reaches accept or reject",
    ),
    "shift by a number of nine bits": (
        "m.x = m.x >> 9w3;",
        {},
        "p4c for BMv2 takes shift amounts of up to 8 bits, not bit<9>",
    ),
    "shift in place by a number of nine bits": (
        "m.x <<= 9w3;",
        {},
        "p4c for BMv2 takes shift amounts of up to 8 bits, not bit<9>",
    ),
    "far shift in place": (
        "bit<300> w = (bit<300>) m.x; w >>= 270; m.x = (bit<8>) w;",
        {},
        "p4c for BMv2 shifts by 256 at most",
    ),
    "a constant's name in a slice": (
        "const int low = 0; m.x[low + 3:low] = 1;",
        {},
        "p4c takes no constant's name as a bound of a slice that is assigned to",
    ),
    "counters without a name": (
        "t.apply();",
        {
            "locals": """table t { key = { m.x : exact; } actions = { NoAction; }
                counters = direct_counter(CounterType.packets); }"""
        },
        "p4c's P4Info wants a @name of counters made in the table",
    ),
    "far shift in two": (
        "bit<300> w = (bit<300>) m.x; w = (w << 200) << 57; m.x = (bit<8>) w;",
        {},
        "p4c for BMv2 shifts by 256 at most",
    ),
    "bits of a signed number": (
        "int<8> i = 0; i[3:0] = m.x[3:0]; m.x = (bit<8>) i;",
        {},
        "p4c does not assign to bits of an int<8>",
    ),
    "chained": (CHAINED, {}, "p4c reads a ? b : c ? d : e as (a ? b : c) ? d : e"),
    "for in": ("for (bit<8> i in 8w0..8w3) { m.x = i; }", {}, "p4c for BMv2 has no for-in loops"),
    "wide shift amount": (
        "bit<16> n = 3; m.x = m.x << n;",
        {},
        "p4c for BMv2 takes shift amounts of up to 8 bits, not bit<16>",
    ),
    "value set of nested structs": (
        "",
        {
            "top": """struct Inner { bit<8> x; } struct Outer { Inner i; bit<8> y; }
                parser Q(packet_in p, out h_t h) {
                    value_set<Outer>(4) some;
                    state start {
                        p.extract(h);
                        transition select(h.a, h.b) { some: two; default: accept; }
                    }
                    state two { p.extract(h); transition accept; }
                }""",
            "states": "state two { Q.apply(p, hdr.g); transition accept; }",
            "transition": "two;",
        },
        "p4c's P4Info has no value sets of nested structs",
    ),
    "actions of one name": (
        "t.apply(); u.apply();",
        {
            "locals": """@name(".a") action a() { } @name(".a") action b() { }
                table t { key = { m.x : exact; } actions = { a; } default_action = a; }
                table u { key = { m.x : exact; } actions = { b; } default_action = b; }""",
        },
        "p4c refuses a second action of the control-plane name a",
    ),
    "actions of one name, called": (
        "a(); b();",
        {"locals": '@name("a") action a() { m.x = 1; } @name("a") action b() { m.x = 2; }'},
        "p4c refuses a second action of the control-plane name I.a",
    ),
    "action of one name in two instances": (
        "c.apply(m.x); d.apply(m.x);",
        {
            "top": """control C(inout bit<8> x)(bit<8> n) {
                @name(".a") action a() { x = n; }
                table t { key = { x : exact; } actions = { a; } default_action = a; }
                apply { t.apply(); } }""",
            "locals": "C(3) c; C(4) d;",
        },
        "p4c refuses a second action of the control-plane name a",
    ),
    "bool for a controller": (
        "",
        {
            "top": '@controller_header("packet_in") header I_t { bool b; bit<7> pad; }'
            " struct J { I_t i; }"
        },
        "p4c's P4Info has no bool in a header for packet-ins and packet-outs",
    ),
    "constant of a constructor's parameter": (
        "c.apply(m.x);",
        {
            "top": "control C(inout bit<8> x)(bit<8> n) { const bit<8> k = n + 1;"
            " apply { x = k; } }",
            "locals": "C(3) c;",
        },
        "p4c takes no parameter of a constructor in a constant",
    ),
    "choice by a constructor's parameter": (
        "c.apply();",
        {
            "top": "control C()(bit<8> n) { counter(n > 1 ? 32w4 : 32w8, CounterType.bytes) k;"
            " apply { k.count(0); } }",
            "locals": "C(3) c;",
        },
        OF_PARAMETER,
    ),
    "comparison of a constructor's parameter": (
        "c.apply(m.f);",
        {
            "top": "control W(out bool y)(bool f) { apply { y = f; } }"
            " control C(out bool y)(bit<8> n) { W(n + 1 == 4) d; apply { d.apply(y); } }",
            "locals": "C(3) c;",
        },
        OF_PARAMETER,
    ),
    "far shift": (
        "bit<300> w = (bit<300>) m.x; w = w << 270; w = w >> 256; m.x = (bit<8>) w;",
        {},
        "p4c for BMv2 shifts by 256 at most",
    ),
    "concatenation of a signed and an unsigned number": (
        "int<16> z = (int<8>) m.x ++ m.x; m.x = (bit<8>) (bit<16>) (z + 1);",
        {},
        "p4c for BMv2 does not put together int<8> and bit<8>, of which one is signed",
    ),
    "division": ("m.x = m.x / 3;", {}, "p4c takes powers of two only at the right of /"),
    "rest": ("m.x %= 3;", {}, "p4c takes powers of two only at the right of %"),
    "choice of numbers": (
        "c.apply(m.x);",
        {
            "top": "control C(inout bit<8> x)(bool f) { apply { x = x + (f ? 1 : 2); } }",
            "locals": "C(true) c;",
        },
        "p4c needs a width for a branch of this ?:",
    ),
    "bits of a number": (
        "c.apply(m.x);",
        {
            "top": "control C(inout bit<8> x)(int n) { apply { x = x + (6w0 ++ n[1:0]); } }",
            "locals": "C(6) c;",
        },
        "p4c takes bits of a bit<> only, not of an int",
    ),
    "choice of a list and a struct": (
        "M n = m.f ? {x = 7, f = m.f} : {5, m.f}; m.x = n.x;",
        {},
        "p4c cannot choose between lists of different forms",
    ),
    "choice of unfinished lists": (
        "M n = m.f ? {7, ...} : {5, m.f}; m.x = n.x;",
        {},
        "p4c cannot choose between lists of different forms",
    ),
    "switch on an enum": (
        "switch ((K) m.x) { K.A: { m.f = true; } 8w3: { m.f = false; } }",
        {"top": "enum bit<8> K { A = 7, B = 9 }"},
        "p4c does not compare K with a number here",
    ),
    "entry for an enum": (
        "t.apply();",
        {
            "top": "enum bit<8> K { A = 7, B = 9 }",
            "locals": """table t { key = { (K) m.x : exact @name("x"); m.f : exact; }
            actions = { NoAction; }
            const entries = { (K.A, true) : NoAction; (3, false) : NoAction; } }""",
        },
        "p4c does not compare K with a number here",
    ),
    "extern arguments": (
        "c.apply(m.x, ra); c.apply(m.x, rb);",
        {
            "top": "control C(inout bit<8> x, register<bit<8>> r) { apply { r.read(x, 0); } }",
            "locals": "register<bit<8>>(4) ra; register<bit<8>>(4) rb; C() c;",
        },
        "p4c applies c with the same register everywhere",
    ),
    "switch on bool": ("switch (m.f) { true: { m.x = 1; } }", {}, "p4c cannot switch on bool"),
    "generic in itself": (
        "W<W<bit<8>>> w = {{1}}; m.x = w.v.v;",
        {"top": "struct W<T> { T v; }"},
        "p4c takes no W among the type arguments of W",
    ),
    "width": (
        "bit<(C.x)> five = 0; m.x = (bit<8>) five;",
        {"top": "struct C_t { bit<8> x; } const C_t C = { 5 };"},
        "p4c knows no field of a constant struct or tuple in a width",
    ),
    "generic function": (
        "m.x = f(same(m.x));",
        {"top": "T same<T>(in T v) { return v; } bit<8> f(in bit<8> x) { return x; }"},
        "p4c loses the types of same in the arguments of another function",
    ),
    "compared with a list": (
        "W<bit<8>> w = {m.x}; m.f = w == {1};",
        {"top": "struct W<T> { T v; }"},
        "p4c does not compare a generic struct with a list",
    ),
    "select on a type": (
        "",
        {"top": "type bit<8> n_t;", "transition": "select((n_t) hdr.h.a) { default: accept; }"},
        "p4c cannot select on n_t",
    ),
    "select on a list": (
        "",
        {"transition": "select({hdr.h.a, hdr.h.b}) { {1, 2}: accept; default: accept; }"},
        "p4c cannot select on one list",
    ),
    "entry of one": (
        "t.apply();",
        {
            "locals": "table t { key = { m.x : ternary; m.f : ternary; } actions = { NoAction; }"
            " const entries = { _ : NoAction; } }"
        },
        "p4c needs a keyset of 2 values here",
    ),
    "default action": (
        "t.apply();",
        {"locals": bound("default_action = add(3);")},
        "p4c wants the argument for x repeated here",
    ),
    "enum key": (
        "t.apply();",
        {
            "top": "enum K { A, B }",
            "locals": "K k = K.A; table t { key = { k : exact; } actions = { NoAction; } }",
        },
        "p4c's P4Info has no match on K, an enum without a width",
    ),
    "digest of a header": (
        "digest<h_t>(1, hdr.h);",
        {},
        "p4c for BMv2 sends structs in digests, not headers",
    ),
    "hash of a number": (
        "hash(m.x, HashAlgorithm.crc16, 8w0, m.x, 8w9);",
        {},
        "p4c wants a list or struct as the data of hash",
    ),
    "negative entry": (
        "t.apply();",
        {
            "locals": """table t { key = { (int<8>) m.x : exact @name("x"); }
            actions = { NoAction; } const entries = { -1 : NoAction; } }"""
        },
        "p4c's P4Info has no negative numbers in tables",
    ),
    "old extern": ("resubmit({m.x});", {}, "p4c's v1model has no resubmit"),
    "field list of action data": (
        "t.apply();",
        {
            "locals": """action keep(bit<8> n) { resubmit_preserving_field_list(n); }
            table t { key = { m.x : exact; } actions = { keep; } }"""
        },
        "p4c for BMv2 wants a constant as the number of a field list",
    ),
    "old drop": ("mark_to_drop();", {}, "p4c's mark_to_drop needs standard_metadata"),
    "length": (
        "",
        {
            "states": "state two { verify(p.length() > 3, error.NoMatch); transition accept; }",
            "transition": "two;",
        },
        "p4c for BMv2 does not know the packet's length",
    ),
    "extern in a parser": (
        "",
        {"states": "state two { assert(hdr.h.a == 1); transition accept; }", "transition": "two;"},
        "p4c for BMv2 has no assert in parsers",
    ),
    **{
        f"{way} in a parser": (
            "",
            {"states": f"state two {{ hdr.s.{way}(1); transition accept; }}", "transition": "two;"},
            f"p4c has no {way} in parsers",
        )
        for way in ("push_front", "pop_front")
    },
    "table twice": (
        "t.apply(); t.apply();",
        {"locals": TABLE},
        "p4c for BMv2: table I.t is applied again after itself",
    ),
    "table of two successors": (
        "if (m.f) { t.apply(); m.x = 3; } else { t.apply(); } m.f = true;",
        {"locals": TABLE},
        "p4c for BMv2: table I.t is followed by different things",
    ),
    "hit of a table in two places": (
        "if (m.f) { m.f = t.apply().hit; } else { m.f = t.apply().hit; }",
        {"locals": TABLE},
        "p4c for BMv2: table I.t is followed by different things",
    ),
    "table before an exit": (
        "if (m.f) { t.apply(); exit; } t.apply();",
        {"locals": TABLE},
        "p4c for BMv2: table I.t is followed by different things",
    ),
    "register of structs": (
        "S s; r.read(s, 0); m.x = s.x;",
        {"top": "struct S { bit<8> x; bit<8> y; }", "locals": "register<S>(4) r;"},
        "p4c for BMv2 takes registers of bit<> and int<>, not of S",
    ),
    "register of booleans": (
        "r.read(m.f, 0);",
        {"locals": "register<bool>(4) r;"},
        "p4c for BMv2 takes registers of bit<> and int<>, not of bool",
    ),
    "registers of size 0": (
        "r.write(0, 1);",
        {"locals": "register<bit<8>>(0) r;"},
        "p4c for BMv2 has no registers of size 0",
    ),
    "two lpm keys": (
        "t.apply();",
        {"locals": "table t { key = { m.x : lpm; hdr.h.a : lpm; } actions = { NoAction; } }"},
        "p4c for BMv2 takes one lpm key in a table",
    ),
    "log of one value": (
        'log_msg("{}", m.x);',
        {},
        "p4c wants a list as the values of log_msg",
    ),
    "log of a header and a number": (
        'log_msg("{} {}", {hdr.h, m.x});',
        {},
        "p4c's log_msg takes no numbers beside the structs and headers among its values",
    ),
    "log of a struct with a struct and a number": (
        'O o = {{m.x}, 2}; log_msg("{} {}", o);',
        {"top": "struct S { bit<8> x; } struct O { S s; bit<8> y; }"},
        "p4c's log_msg takes no numbers beside the structs and headers among its values",
    ),
    "index beyond the stack in a function": (
        "set(hdr, 1); set(hdr, 2);",
        {"top": "void set(inout H hdr, in bit<8> i) { if (i < 2) { hdr.s[i].a = 1; } }"},
        "p4c refuses 2 as the index of 2 elements",
    ),
    "index beyond the stack in an action": (
        "set(5);",
        {"locals": "action set(in bit<8> i) { hdr.s[i].a = hdr.s[i].b; }"},
        "p4c refuses 5 as the index of 2 elements",
    ),
    "error as action data": (
        "t.apply();",
        {
            "locals": "action a(error e) { m.f = e == error.NoError; }"
            "table t { key = { m.x : exact; } actions = { a; } }"
        },
        "p4c for BMv2 takes bit<> and int<> as action data: e is of type error",
    ),
    "struct as action data": (
        "t.apply();",
        {
            "top": "struct S { bit<8> x; }",
            "locals": "action a(S s) { m.x = s.x; }"
            "table t { key = { m.x : exact; } actions = { a; } }",
        },
        "p4c for BMv2 takes bit<> and int<> as action data: s is of type S",
    ),
    "clone of egress in ingress": (
        "clone(CloneType.E2E, 5);",
        {},
        "p4c for BMv2 has no clone of type E2E in ingress",
    ),
    "recirculation in ingress": (
        "recirculate_preserving_field_list(1);",
        {},
        "p4c for BMv2 has no recirculate in ingress",
    ),
    "table of a sub-control": (
        "c.apply(m.x); c.apply(m.x);",
        {"top": SUB, "locals": "Sub() c;"},
        "p4c for BMv2: table I.c.t is applied again after itself",
    ),
}
TAKEN = {
    "concatenation of signed numbers": (
        "int<16> z = (int<8>) m.x ++ (int<8>) m.x; m.x = (bit<8>) (bit<16>) (z + 1);",
        {},
    ),
    "parser whose end is no match": ("", {"transition": "select(hdr.h.a) { 1: start; }"}),
    "arrays of one path": (
        """bit<8>[2] a = {1, 2}; if (m.f) { m.x = a[0]; } else { a[0] = 3; m.x = a[0]; }
        if (m.x == 1) { bit<8>[2] b = {3, 4}; b[0] = m.x; m.x = b[0]; } set();
        bit<8>[2] c = (bit<8>[2]) {5, 6}; m.f = c == (bit<8>[2]) {m.x, 6}; m.x = sum(c);""",
        {
            "top": "bit<8> sum(in bit<8>[2] a) { return a[0] + a[1]; }",
            "locals": "bit<8>[2] d; action set() { d[0] = m.x; m.x = d[0]; }",
        },
    ),
    "arrays in variables": ("bit<8>[4] a = {1, 2, 3, 4}; a[0] = m.x; m.x = a[0] + a[1];", {}),
    "bits and enums for a controller": (
        "",
        {
            "top": "type bit<9> N; enum bit<8> K { A = 1 }"
            ' @controller_header("packet_in") header I_t { N n; int<7> i; K k; }'
            " struct J { I_t i; }"
        },
    ),
    "numbers of a constructor's parameter": (
        "c.apply(m.x);",
        {
            "top": """control W(inout bit<8> x)(bit<8> n) { apply { x = n == 3 ? 8w1 : n; } }
                control C(inout bit<8> x)(bit<32> n, bool f) { W((bit<8>) n + 1) d;
                    counter(((n << 2) | 3) - 1, CounterType.bytes) k;
                    apply { k.count(0); d.apply(x); } }""",
            "locals": "C(3, 1 == 1 ? true : false) c;",
        },
    ),
    "action of one control in two places": (
        "c.apply(m.x); C.apply(m.x); b(m.x); b(m.x);",
        {
            "top": """action b(inout bit<8> x) { x = 2; }
                control C(inout bit<8> x) { action a() { x = 1; } apply { a(); b(x); } }""",
            "locals": "C() c;",
        },
    ),
    "call in a list of actions": (
        "t.apply();",
        {
            "top": "bit<8> next(in bit<8> x) { return x + 1; }",
            "locals": """action set(in bit<8> v) { m.x = v; }
                table t { key = { m.x : exact; } actions = { set(next(m.x)); }
                    default_action = set(next(m.x)); }""",
        },
    ),
    "parentheses": ("m.x = m.x == 1 ? 8w2 : (m.x == 2 ? 8w3 : 8w4);", {}),
    "parentheses first": ("m.x = m.x == 1 ? (m.x == 2 ? 8w3 : 8w4) : 8w5;", {}),
    "a choice compared": ("m.x = (m.x == 1 ? 8w2 : 8w3) == 8w2 ? 8w4 : 8w5;", {}),
    "shift amount": ("bit<8> n = 3; m.x = m.x << n;", {}),
    "numbers and names in slices": ("const int i = 2; m.x[2 + 1:0] = m.x[i + 1:0];", {}),
    "an implementation with a name": (
        "t.apply();",
        {
            "locals": """table t { key = { m.x : exact; } actions = { NoAction; }
                @name("p") implementation = action_profile(8); }"""
        },
    ),
    "shift": ("m.x = (bit<8>) ((bit<300>) m.x >> 256);", {}),
    "a loop in an action": ("a();", {"locals": f"action a() {{ {LOOP} }}"}),
    "powers of two": ("m.x = m.x / 4 + m.x % 8;", {}),
    "a path in an annotation": ("a();", {"locals": "@sai(NEXT/3) action a() { m.x = 1; }"}),
    "choice of lists": ("M n = m.f ? {7, true} : {5, m.f}; m.x = n.x;", {}),
    "choice of constants": ("m.x = true ? 1 : 2;", {}),
    "select on an enum": (
        "",
        {
            "top": "enum bit<8> K { A = 7, B = 9 }",
            "transition": "select((K) hdr.h.a) { 3: accept; K.B: accept; default: reject; }",
        },
    ),
    "the same extern": (
        "c.apply(m.x, ra); c.apply(m.x, ra); d.apply(m.x, rb);",
        {
            "top": "control C(inout bit<8> x, register<bit<8>> r) { apply { r.read(x, 0); } }",
            "locals": "register<bit<8>>(4) ra; register<bit<8>>(4) rb; C() c; C() d;",
        },
    ),
    "registers of names for numbers": (
        "K k; r.read(k, 0); w_t w; s.read(w, 0); m.x = (bit<8>) k + (bit<8>) w;",
        {
            "top": "enum bit<8> K { A = 7, B = 9 } type bit<8> w_t;",
            "locals": "register<K>(4) r; register<w_t>(4) s;",
        },
    ),
    "registers of an enum": (
        "K k; r.read(k, 0); m.f = k == K.A;",
        {"top": "enum K { A, B }", "locals": "register<K>(4) r;"},
    ),
    "logs of lists": (
        'log_msg("start"); log_msg("{}", {m.x}); S s = {m.x}; log_msg("{}", s);',
        {"top": "struct S { bit<8> x; }"},
    ),
    "logs of headers and structs": (
        'S s = {m.x}; T t = {s}; log_msg("{} {}", {hdr.h, hdr.s[m.x]}); log_msg("{}", {s});'
        'log_msg("{} {}", {t, m}); log_msg("{} {}", hdr.h);',
        {"top": "struct S { bit<8> x; } struct T { S s; }"},
    ),
    "index within the stack": (
        "set(1); set(hdr.h.a);",
        {"locals": "action set(in bit<8> i) { hdr.s[i].a = 1; }"},
    ),
    "clone in ingress": ("clone(CloneType.I2E, 5); resubmit_preserving_field_list(1);", {}),
    "switch on a number": ("switch (m.x) { 1: { m.f = true; } }", {}),
    "generic": (
        "R<bit<8>> r = {{1}}; m.x = r.v.v;",
        {"top": "struct W<T> { T v; } struct R<T> { W<T> v; }"},
    ),
    "default action": ("t.apply();", {"locals": bound("default_action = add(m.x, 3);")}),
    "table in branches": ("if (m.f) { t.apply(); } else { t.apply(); }", {"locals": TABLE}),
    "table and return": ("if (m.f) { t.apply(); return; } t.apply();", {"locals": TABLE}),
    "the same follows": (
        "if (m.f) { m.x = 3; t.apply(); } else { t.apply(); } m.f = true;",
        {"locals": TABLE},
    ),
    "sub-control in branches": (
        "if (m.f) { c.apply(m.x); } else { c.apply(m.x); }",
        {"top": SUB, "locals": "Sub() c;"},
    ),
    "verify": (
        "",
        {"states": "state two { verify(hdr.h.a == 1, error.NoMatch); transition accept; }",
         "transition": "two;"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_p4c_refuses(name: str) -> None:
    body, parts, expected = REFUSED[name]
    assert warnings(body, "p4c", **parts) == [expected]


@pytest.mark.parametrize("name", TAKEN)
def test_what_p4c_takes(name: str) -> None:
    body, parts = TAKEN[name]
    assert warnings(body, "p4c", **parts) == []


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="p4c-bm2-ss is not on PATH")
@pytest.mark.parametrize("name", [*REFUSED, *(f"{name}, taken" for name in TAKEN)])
def test_p4c_itself(name: str, tmp_path: Path) -> None:
    taken = name.endswith(", taken")
    body, parts = TAKEN[name.removesuffix(", taken")] if taken else REFUSED[name][:2]
    slots = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    (tmp_path / "case.p4").write_text(TEMPLATE.format(body=body, **(slots | parts)))
    words = "p4c-bm2-ss --arch v1model --Wdisable --p4runtime-files case.txtpb -o case.json case.p4"
    done = subprocess.run(words.split(), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == taken, done.stderr


CHECKSUM = """control Sum(inout H hdr, inout M m) {{
    apply {{ update_checksum(true, {{ {data}, hdr.g.a }}, hdr.g.b, HashAlgorithm.csum16); }}
}}"""


def with_checksum(data: str) -> str:
    """Return a program whose checksum is of this data."""
    text = TEMPLATE.format(top=CHECKSUM.format(data=data), states="", transition="accept;",
                           locals="", body="")  # fmt: skip
    return text.replace("bit<8> b;", "bit<16> b;").replace("E(), V(), D()", "E(), Sum(), D()")


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        ("hdr.h.a", False),
        ("8w3", False),
        ("8w3 + 4", False),
        ("hdr.h.b[15:8]", True),
        ("hdr.h.a + 1", True),
        ("(bit<8>) hdr.h.b", True),
        ("~hdr.h.a", True),
    ],
)
def test_what_a_checksum_is_of(data: str, refused: bool, tmp_path: Path) -> None:
    text = with_checksum(data)
    found = [w.message for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"]
    assert found == ["p4c computes nothing in the data of update_checksum"] * refused
    if shutil.which("p4c-bm2-ss") is not None:
        (tmp_path / "case.p4").write_text(text)
        words = ["p4c-bm2-ss", "--arch", "v1model", "--Wdisable", "-o", "case.json", "case.p4"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode != 0) == refused, done.stderr


@pytest.mark.parametrize(
    ("body", "top", "expected"),
    [
        (LOOP, "", ONCE),
        (
            "m.x = f(m.x);",
            f"bit<8> f(in bit<8> x) {{ M m = {{x, true}}; {LOOP} return m.x; }}",
            ONCE,
        ),
        (
            "S a = {1}; S b = {2}; m.x = (m.f ? a : b).x;",
            "struct S { bit<8> x; }",
            "p4c's JSON for a field of a struct chosen by ?: crashes BMv2",
        ),
    ],
)
def test_what_p4c_compiles_to_something_else(body: str, top: str, expected: str) -> None:
    assert warnings(body, "p4c", top=top) == [expected]


CATCH_ALL = "p4c's JSON has this case as the default, after those that follow"
STATE = "state two { p.extract(hdr.g); transition accept; }"


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        ("select(hdr.h.a) { 1: accept; 3 &&& 0: two; default: accept; }", [CATCH_ALL]),
        ("select(hdr.h.a) { 1: accept; 0..255: two; default: accept; }", [CATCH_ALL]),
        ("select(hdr.h.a) { 0..255: two; 1: accept; }", [CATCH_ALL]),
        ("select(hdr.h.a, hdr.h.b) { (_, 0..255): two; default: accept; }", [CATCH_ALL]),
        ("select(hdr.h.a, hdr.h.b) { (_, _): two; default: accept; }", [CATCH_ALL]),
        ("select(hdr.h.a) { 1: accept; _: two; default: accept; }", []),
        ("select((int<8>) hdr.h.a) { -128..127: two; default: accept; }", []),
        ("select(hdr.h.a) { 1: accept; 0..254: two; default: accept; }", []),
        ("select(hdr.h.a) { 1: two; 3 &&& 0: accept; default: accept; }", []),
    ],
)
def test_a_case_for_all_before_others(transition: str, expected: list[str]) -> None:
    assert warnings("", "p4c", states=STATE, transition=transition) == expected


@pytest.mark.parametrize(("version", "known"), [("20180101", True), ("20300101", False)])
def test_the_version_of_v1model(version: str, known: bool) -> None:
    slots = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    text = f"#define V1MODEL_VERSION {version}\n" + TEMPLATE.format(body="", **slots)
    found = [w.message for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"]
    expected = f"p4c knows V1MODEL_VERSION 20180101 to 20200408, not {version}"
    assert found == ([] if known else [expected])


ELEMENT = "an element with a run-time index"
INT = "p4c's JSON has 0 for an int that depends on the packet"
INSTANCES = "p4c for BMv2 makes one counter of an array of them"
UNIONS = """header n_t { bit<8> v; } header_union U { n_t n; h_t h; } struct W { U[2] u; }
control C(inout W w, out bit<8> x) { apply { x = w.u[1].isValid() ? 8w1 : 0; } }"""
READS = "p4c's JSON for a list that reads the header it is assigned to makes it invalid"


@pytest.mark.parametrize(
    ("body", "parts", "expected"),
    [
        (
            "hdr.h.b = hdr.s[hdr.h.a].isValid() ? 8w1 : 0;",
            {},
            [f"BMv2 refuses p4c's JSON for isValid() of {ELEMENT}"],
        ),
        ("hdr.h.b = hdr.s[1].isValid() ? 8w1 : 0; hdr.s[hdr.h.a].a = 1;", {}, []),
        ("", {"top": UNIONS}, ["p4c's JSON for isValid() of a union in a stack crashes BMv2"]),
        (
            "t.apply();",
            {
                "locals": """action set(bit<1> i) { hdr.s[i].a = 1; }
                action copy(bit<1> i) { m.x = (bit<8>) i; hdr.s[m.x].a = 1; }
                table t { key = { m.x: exact; } actions = { set; copy; } }"""
            },
            ["p4c's JSON for action data as the index of a stack crashes BMv2"],
        ),
        (
            "",
            {
                "transition": "two;",
                "states": """state two { p.extract(hdr.s.next);
                transition select(hdr.s.lastIndex) { 0: two; default: three; } }
                state three { transition select((bit<8>) hdr.s.lastIndex) { default: accept; } }""",
            },
            ["p4c's JSON for a select on lastIndex crashes BMv2"],
        ),
        (
            "t.apply();",
            {
                "locals": """table t { key = { m.x : exact; hdr.h.a : exact; }
                actions = { NoAction; } const entries = { (1, 2) : NoAction();
                (2, 2) : NoAction(); (1, 2) : NoAction(); } }"""
            },
            ["BMv2 ends at p4c's JSON for a second entry of one key"],
        ),
        ("hdr.s[0] = {1, hdr.s[0].b};", {}, [READS]),
        ("m.x = (bit<8>) (int) hdr.h.a;", {}, [INT]),
        ("bit<16> y = (int) hdr.h.a; m.x = y[7:0];", {}, [INT]),
        ("hdr.s[(int) hdr.h.a].a = (bit<8>) (int) 5;", {}, []),
        ("c[1].count(0);", {"locals": "counter[2](4, CounterType.bytes) c;"}, [INSTANCES]),
        ("hdr.h = (h_t) {a = hdr.h.b, b = hdr.h.a};", {}, [READS]),
        ("hdr.s[0] = {1, hdr.s[1].b}; hdr.h = {hdr.g.a, 2}; hdr.g = {1, 2};", {}, []),
    ],
)
def test_json_that_bmv2_takes_otherwise(
    body: str, parts: dict[str, str], expected: list[str]
) -> None:
    """What BMv2 does with p4c's JSON was seen with p4c 1.2.5.16 and BMv2 1.15.5."""
    assert warnings(body, "p4c", **parts) == expected


def test_limits_of_psa_switch() -> None:
    program = Path(__file__).parents[1] / "jit" / "programs" / "psa_traffic.p4"
    found = {w.message for w in compile_source(program).warnings if w.kind == "p4c"}
    assert found == {
        "p4c for psa_switch has no conditions in deparsers",
        "p4c for psa_switch has no initial values of registers",
    }


@pytest.mark.parametrize(
    "cell", ["h_t", "h_t[2]", "u_t", "varbit<16>", "s_t", "tuple<h_t>", "s_t[2]"]
)
def test_a_register_that_is_an_error_has_no_warning_beside_it(cell: str) -> None:
    """A warning says what runs here."""
    types = "header h_t { bit<8> x; } header_union u_t { h_t h; } struct s_t { h_t h; }"
    compiled = compile_source(
        "case.p4", text=source(types=types, ingress_locals=f"register<{cell}>(4) r;")
    )
    assert [w.message for w in compiled.warnings if w.kind == "p4c"] == []
    with pytest.raises(CompileError, match=f"register of {re.escape(cell)}: a cell must be"):
        p4_programs.check(compiled)


def test_a_table_is_silenced() -> None:
    locals = TABLE.replace("table t", '@noWarn("p4c") table t')
    assert warnings("t.apply(); t.apply();", "p4c", locals=locals) == []


def test_a_switch_in_an_action() -> None:
    found = warnings("a();", "p4c", locals="action a() { switch (m.x) { 1: { m.f = true; } } }")
    assert found == ["p4c for BMv2 has no switch statements in actions"]


def test_headers_of_broken_bytes() -> None:
    found = warnings(top="header o_t { bit<7> a; varbit<8> v; }", kind="p4c")
    assert found == ["p4c for BMv2 needs headers of whole bytes; this one has 7 bits"]


def test_a_deparser_and_a_checksum_block() -> None:
    text = TEMPLATE.format(top="", locals="", states="", transition="accept;", body="")
    text = text.replace("p.emit(hdr);", "if (hdr.h.isValid()) { p.emit(hdr); }")
    text = text.replace("inout M m) { apply { } }", "inout M m) { apply { m.x = 1; } }", 1)
    found = [w.message for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"]
    assert found == [
        "p4c for BMv2: a checksum block can only verify and update checksums",
        "p4c for BMv2: a deparser can only emit",
    ]


def test_programs_of_other_architectures_have_no_limits_of_bmv2() -> None:
    text = "#include <core.p4>\nheader o_t { bit<7> a; }\n"
    assert compile_source("case.p4", text=text, library=True).warnings == []


def test_they_are_silenced_by_their_kind() -> None:
    text = TEMPLATE.format(top="", locals="", states="", transition="accept;", body=CHAINED)
    text = text.replace("control I(", '@noWarn("p4c") control I(')
    assert [w for w in compile_source("case.p4", text=text).warnings if w.kind == "p4c"] == []


def test_strict_makes_warnings_errors(tmp_path: Path) -> None:
    program = tmp_path / "case.p4"
    parts = {"top": "", "locals": "", "states": "", "transition": "accept;"}
    program.write_text(TEMPLATE.format(body=CHAINED, **parts))
    found = CliRunner().invoke(app, ["p4", "check", str(program)])
    assert found.exit_code == 0 and "ok" in found.output
    found = CliRunner().invoke(app, ["p4", "check", "--strict", str(program)])
    assert found.exit_code == 1 and "[p4c]" in found.output and "ok" not in found.output
