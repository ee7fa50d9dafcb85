"""Legal programs that are probably wrong get a warning, with its place, and compile."""

from __future__ import annotations

import pytest
from warning_case import TEMPLATE, warnings

from gradplane.switch.compiler import compile_source


def test_the_place_is_reported() -> None:
    text = TEMPLATE.format(
        top="", locals="", states="", transition="accept;", body="bit<8> n; m.x = n;"
    )
    [warning] = compile_source("case.p4", text=text).warnings
    assert warning.render({"case.p4": text.splitlines(keepends=True)}) == (
        "case.p4:15:29: warning: n is read before it is given a value [uninitialized_use]\n"
        "        apply { bit<8> n; m.x = n; }\n"
        "                                ^"
    )


@pytest.mark.parametrize(
    "body",
    [
        "bit<8> n; m.x = n;",
        "bit<8> n; if (m.f) { m.x = n + 1; } n = 2;",
        "bit<8> n; n += 1;",
        "bit<8> n; m.x = m.f ? n : 0;",
        "M n; m = n;",
    ],
)
def test_unset_variable(body: str) -> None:
    assert warnings(body) == ["n is read before it is given a value"]


@pytest.mark.parametrize(
    "body",
    [
        "bit<8> n; n = 1; m.x = n;",
        "bit<8> n; if (m.f) { n = 1; } m.x = n;",
        "bit<8> n; set(n); m.x = n;",
        "bit<8> n; for (bit<8> i in 1 .. 3) { if (i > 1) { m.x = n; } n = i; }",
        "for (bit<8> n in 1 .. 3) { m.x = n; }",
        "M n; n.x = 1; m = n;",
        "bit<8> n; n[3:0] = 1; m.x = n;",
        "h_t n; m.f = n == hdr.h;",
        "M n; m.x = (bit<8>) n.minSizeInBits();",
    ],
)
def test_variable_that_may_be_set(body: str) -> None:
    assert warnings(body, top="void set(out bit<8> r) { r = 1; }") == []


def test_a_controls_variable_is_unset_if_nothing_sets_it() -> None:
    locals_ = "bit<8> n; bit<8> k; action a() { m.x = n + k; } action b() { k = 1; }"
    assert warnings("a(); b();", locals=locals_) == ["n is read before it is given a value"]


@pytest.mark.parametrize(
    ("what", "declared", "use"),
    [
        ("table t is never applied", "table t { actions = { NoAction; } }", "t.apply();"),
        ("action a is never used", "action a() { }", "a();"),
        ("variable n is never used", "bit<8> n;", "n = 1;"),
        ("instance r is never used", "register<bit<8>>(4) r;", "r.write(0, 1);"),
    ],
)
def test_never_used(what: str, declared: str, use: str) -> None:
    assert warnings(locals=declared, kind="unused") == [what]
    assert warnings(locals=f'@noWarn("unused") {declared}', kind="unused") == []
    assert warnings(f"if (m.f) {{ {use} }}", locals=declared, kind="unused") == []


def test_functions_and_blocks_never_used() -> None:
    top = "bit<8> one() { return 1; } bit<8> two() { return one(); } control C() { apply { } }"
    assert warnings(top=top, kind="unused") == [
        "function two is never used",
        "control C is never used",
    ]
    assert warnings("m.x = two(); C.apply();", top=top, kind="unused") == []


def test_header_nothing_makes_valid() -> None:
    assert warnings("m.x = hdr.g.a;") == ["header g is used but never made valid"]
    assert warnings("m.x = hdr.s[1].a;") == ["header s is used but never made valid"]
    assert warnings("hdr.g.a = 1;") == ["header g is used but never made valid"]


@pytest.mark.parametrize(
    "made",
    [
        "hdr.g.setValid();",
        "hdr.g = hdr.h;",
        "hdr.g = { 1, 2 };",
        "copy(hdr.g);",
        "make(hdr);",
        "H other; hdr = other;",
    ],
)
def test_header_made_valid(made: str) -> None:
    top = "void copy(out h_t h) { h = { 1, 2 }; } void make(inout H all) { all.g.setValid(); }"
    assert warnings(f"{made} m.x = hdr.g.a;", top=top) == []


def test_isvalid_alone_is_fine() -> None:
    assert warnings("if (hdr.g.isValid()) { m.x = 1; }") == []


def test_numbers_that_do_not_fit() -> None:
    assert warnings("m.x = 300;") == ["300 does not fit bit<8>: it becomes 44"]
    assert warnings("m.x = 8w256;") == ["256 does not fit bit<8>: only its low 8 bits are kept"]


def test_states_and_cases_never_reached() -> None:
    states = "state lost { transition accept; }"
    assert warnings(states=states) == ["state lost is never reached"]
    select = "select(hdr.h.a) { 1: accept; default: accept; 2: reject; }"
    assert warnings(transition=select) == ["this case is never reached: it follows default"]


def test_empty_range() -> None:
    select = "select(hdr.h.a) { 5 .. 1: accept; default: accept; }"
    assert warnings(transition=select) == ["the range 5..1 is empty: the lower bound first"]


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ("1: accept; 1: reject;", 1),
        ("1 .. 5: accept; 3: reject; 2 .. 4: reject; 5 .. 6: reject;", 2),
        ("0x10 &&& 0xf0: accept; 0x12: reject; 0x18 &&& 0xf8: reject; 0x10 .. 0x1f: reject;", 3),
        ("0 &&& 0x80: accept; 0 .. 127: reject; 0 .. 128: reject;", 1),
        ("1: accept; 2: accept; 1 .. 2: reject;", 0),
    ],
)
def test_cases_that_an_earlier_one_takes(cases: str, said: int) -> None:
    expected = ["this case is never reached: an earlier case matches all its values"]
    assert warnings(transition=f"select(hdr.h.a) {{ {cases} }}") == expected * said


def test_entries_that_an_earlier_one_takes() -> None:
    table = """table t {{ key = {{ m.x : {}; }} actions = {{ NoAction; }}
               const entries = {{ {} }} }}"""
    expected = ["this entry is never matched"]
    some, apply = "1 &&& 1 : NoAction; 3 : NoAction; 2 : NoAction;", "t.apply();"
    assert warnings(apply, locals=table.format("ternary", some)) == expected
    assert warnings(apply, locals=table.format("ternary", some).replace("const", "")) == []
    prefixes = "0x10 &&& 0xf0 : NoAction; 0x12 : NoAction; 0x1f &&& 0xf0 : NoAction;"
    assert warnings(apply, locals=table.format("lpm", prefixes)) == expected


def test_priorities_of_entries() -> None:
    entries = "priority = 5 : (1, _) : NoAction; priority = 5 : (2, _) : NoAction;"
    table = f"""table t {{ key = {{ m.x : exact; m.f : ternary; }} actions = {{ NoAction; }}
                entries = {{ {entries} priority = 9 : (3, _) : NoAction; }} }}"""
    assert warnings("t.apply();", locals=table) == [
        "a second entry has priority 5: the winner is undefined",
        "this entry has priority 9 and follows one of priority 5",
    ]
    both = '@noWarn("duplicate_priorities") @noWarn("entries_out_of_priority_order") entries'
    assert warnings("t.apply();", locals=table.replace("entries", both)) == []


def test_more_entries_than_room() -> None:
    table = """table t { key = { m.x : exact; } actions = { NoAction; } size = 1;
               const entries = { 1 : NoAction; 2 : NoAction; } }"""
    assert warnings("t.apply();", locals=table) == ["table t has 2 entries, and a size of 1"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("m.f = m.x >= 0;", "this is always true"),
        ("m.f = 0 > m.x;", "this is always false"),
        ("m.f = m.x <= 255;", "this is always true"),
        ("m.f = m.x == m.x;", "this is always true"),
        ("m.f = hdr.h.b < hdr.h.b;", "this is always false"),
        ("m.x = m.x << 8;", "a shift by 8 leaves none of the 8 bits"),
        ("m.x = (bit<8>) 256;", "256 does not fit bit<8>: it becomes 0"),
        ("if (m.f) { return; } else { exit; } m.x = 1;", "this is never executed"),
        ("for (bit<8> i in 1 .. 3) { m.x = i; break; m.x = 2; }", "this is never executed"),
        ("mark_to_drop();", "mark_to_drop is deprecated"),
    ],
)
def test_surely_wrong(body: str, said: str) -> None:
    assert warnings(body) == [said]


@pytest.mark.parametrize(
    "body",
    [
        "m.f = m.x > 0; m.f = m.x < 255; m.f = (int<8>) m.x < 0;",
        "m.f = m.x >= LEAST;",  # it may be meant to be changed
        "m.f = m.x == hdr.h.a; m.x = m.x << 7; m.x = (bit<8>) -1;",
        "if (m.f) { return; } m.x = 1;",
    ],
)
def test_right(body: str) -> None:
    assert warnings(body, top="const bit<8> LEAST = 0;") == []


def test_out_parameter_never_set() -> None:
    top = "void f(out bit<8> a, out h_t h) { if (h.isValid()) { a = 1; } } void g(out bit<8> b) { }"
    expected = ["b is an out parameter and is never given a value"]
    assert warnings("f(m.x, hdr.h); g(m.x);", top=top) == expected


def test_key_that_is_constant() -> None:
    table = "table t { key = { 8w1 : exact; m.x : exact; } actions = { NoAction; } }"
    assert warnings("t.apply();", locals=table) == ["this key is the same for every packet"]


def test_local_that_hides_a_parameter() -> None:
    assert warnings("x = 1;", locals="bit<8> x; bit<8> m;") == ["m hides the parameter m"]


def test_property_of_no_meaning() -> None:
    table = "table t { key = { m.x : exact; } actions = { NoAction; } counter = 3; }"
    expected = ["the architecture's tables have no property counter: it is ignored"]
    assert warnings("t.apply();", locals=table) == expected


def test_an_int_where_a_new_type_is_wanted() -> None:
    top = "type bit<10> id_t; type id_t id2_t; const id_t FIRST = 3; const id2_t SECOND = 1025;"
    uses = "if (FIRST == (id_t) 10w3) { m.x = 1; } if (SECOND == (id2_t) (id_t) 10w1) { m.x = 2; }"
    assert warnings(uses, top=top) == [
        "P4_16 requires a cast from int to id_t",
        "P4_16 requires a cast from int to id2_t",
        "1025 does not fit bit<10>: it becomes 1",
    ]


FOLLOWS = "a packet leaves by egress_spec, which is never set; egress_port follows"
SETS = "control C(inout standard_metadata_t s) { apply { s.egress_port = 3; } }"


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("sm.egress_port = 3;", {}),
        ("sm.egress_port[2:0] = 3; mark_to_drop(sm);", {}),
        ("c.apply(sm);", {"top": SETS, "locals": "C() c;"}),
    ],
)
def test_a_port_that_v1model_does_not_ask_for(body: str, parts: dict[str, str]) -> None:
    assert warnings(body, kind="routing", **parts) == [FOLLOWS]


@pytest.mark.parametrize(
    "body",
    [
        "sm.egress_spec = 3;",
        "sm.egress_port = 3; sm.egress_spec = sm.egress_port;",
        "standard_metadata_t other = sm; other.egress_port = 3; sm = other;",
        "sm.mcast_grp = 3;",
    ],
)
def test_a_port_that_v1model_asks_for(body: str) -> None:
    assert warnings(body, kind="routing") == []


DROPPED = "the packet is dropped: drop is true at first, and never set"
PSA = """
#include <core.p4>
#include <psa.p4>
struct E {{ }}
parser IP(packet_in p, out E h, inout E m, in psa_ingress_parser_input_metadata_t i, in E a,
          in E b) {{ state start {{ transition accept; }} }}
control I(inout E h, inout E m, in psa_ingress_input_metadata_t i,
          inout psa_ingress_output_metadata_t o) {{ apply {{ {body} }} }}
control ID(packet_out p, out E a, out E b, out E c, inout E h, in E m,
           in psa_ingress_output_metadata_t o) {{ apply {{ }} }}
parser EP(packet_in p, out E h, inout E m, in psa_egress_parser_input_metadata_t i, in E a,
          in E b, in E c) {{ state start {{ transition accept; }} }}
control X(inout E h, inout E m, in psa_egress_input_metadata_t i,
          inout psa_egress_output_metadata_t o) {{ apply {{ }} }}
control ED(packet_out p, out E a, out E b, inout E h, in E m, in psa_egress_output_metadata_t o,
           in psa_egress_deparser_input_metadata_t d) {{ apply {{ }} }}
PSA_Switch(IngressPipeline(IP(), I(), ID()), PacketReplicationEngine(),
           EgressPipeline(EP(), X(), ED()), BufferingQueueingEngine()) main;
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("o.egress_port = (PortId_t) 3;", [DROPPED]),
        ("o.egress_port = (PortId_t) 3; o.drop = false;", []),
        ("send_to_port(o, (PortId_t) 3);", []),
    ],
)
def test_a_port_for_a_packet_that_psa_drops(body: str, found: list[str]) -> None:
    compiled = compile_source("case.p4", text=PSA.format(body=body))
    assert [w.message for w in compiled.warnings if w.kind == "routing"] == found
