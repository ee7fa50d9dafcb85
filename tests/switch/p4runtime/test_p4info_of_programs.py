"""P4Info of compiled programs: names, translations and annotations as the source gives them."""

from __future__ import annotations

import pytest
from finsy.proto import p4i

from gradplane.switch import CompileError, Switch
from gradplane.switch.backends import p4info_for
from gradplane.switch.compiler import compile_source
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.p4info import build_p4info
from gradplane.switch.runtime.control_errors import TableError

TEXT = """
#include <core.p4>
#include <v1model.p4>
{types}
header h_t {{ bit<8> a; }}
struct H {{ h_t h; }}
struct M {{ }}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout H hdr, inout M m) {{ apply {{ }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    {locals}
    apply {{ sm.egress_spec = 1; {body} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ }} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def text(types: str = "", locals: str = "", body: str = "") -> str:
    return TEXT.format(types=types, locals=locals, body=body)


def p4info(types: str = "", locals: str = "", body: str = "") -> p4i.P4Info:
    return build_p4info(compile_source("case.p4", text=text(types, locals, body)).program)


NAMED = """
    action set(@name("value") bit<8> v, @name(".whole") bit<8> w, bit<8> x) {
        hdr.h.a = v + w + x;
    }
    table t { key = { hdr.h.a : exact; } actions = { set; } }
"""


def test_an_action_parameter_goes_by_its_name_annotation() -> None:
    (action,) = (a for a in p4info(locals=NAMED, body="t.apply();").actions if a.params)
    assert [p.name for p in action.params] == ["value", "whole", "x"]
    switch = Switch("case.p4", text=text(locals=NAMED, body="t.apply();"))
    switch.table("t").add({"hdr.h.a": 1}, "set", {"value": 2, "whole": 3, "x": 4})
    assert switch.process(0, b"\x01") == [(1, b"\x09")]


HEADERS = """
@p4runtime_translation("example.com/port", 32) type bit<9> number_t;
@p4runtime_translation("example.com/vlan", bit<16>) type bit<12> bits_t;
@p4runtime_translation("example.com/name", string) type bit<10> text_t;
type bit<8> plain_t;
struct inner_t { text_t text; }
@controller_header("packet_in")
header in_t { number_t number; bits_t bits; inner_t inner; plain_t plain; bit<1> rest; }
"""


@pytest.mark.p4runtime("8.4.6-1 8.4.6-2 8.4.7-1")
def test_translations_and_the_types_of_controller_headers() -> None:
    info = p4info(types=HEADERS)
    (header,) = info.controller_packet_metadata
    assert [(f.name, f.bitwidth, f.type_name.name) for f in header.metadata] == [
        ("number", 32, "number_t"),
        ("bits", 16, "bits_t"),
        ("inner.text", 0, "text_t"),
        ("plain", 8, "plain_t"),
        ("rest", 1, ""),
    ]
    described = {name: spec.translated_type for name, spec in info.type_info.new_types.items()}
    assert (described["number_t"].uri, described["number_t"].sdn_bitwidth) == (
        "example.com/port",
        32,
    )
    assert (described["bits_t"].uri, described["bits_t"].sdn_bitwidth) == ("example.com/vlan", 16)
    assert described["text_t"].uri == "example.com/name"
    assert described["text_t"].WhichOneof("sdn_type") == "sdn_string"
    assert info.type_info.new_types["plain_t"].original_type.bitstring.bit.bitwidth == 8


def test_an_empty_uri_is_a_translation_too() -> None:
    types = '@p4runtime_translation("", string) type bit<9> port_t;'
    header = '@controller_header("packet_in") header in_t { port_t port; bit<7> rest; }'
    info = p4info(types=f"{types}\n{header}")
    (described,) = info.type_info.new_types.values()
    assert described.translated_type.WhichOneof("sdn_type") == "sdn_string"
    assert info.controller_packet_metadata[0].metadata[0].bitwidth == 0


@pytest.mark.p4runtime("8.4.6-2")
def test_a_translation_that_cannot_be_read_is_refused() -> None:
    types = '@p4runtime_translation("u", bool)\ntype bit<9> port_t;'
    with pytest.raises(CompileError) as caught:
        p4info(types=types)
    (found,) = caught.value.diagnostics
    assert found.message == '@p4runtime_translation("u" , bool) is malformed'
    assert found.hint == 'write ("uri", 32), ("uri", bit<32>) or ("uri", string)'


@pytest.mark.p4runtime("6.1.4-1")
def test_structured_annotations_stay_structured() -> None:
    notes = '@list[1, "t" ++ "wo", N > 2] @pairs[size = -N - 1, kind = "x"] @empty[] @free(a b)'
    table = f"{notes} table t {{ key = {{ hdr.h.a : exact; }} actions = {{ NoAction; }} }}"
    (described,) = p4info(types="const int N = 3;", locals=table, body="t.apply();").tables
    assert list(described.preamble.annotations) == ["@free(a b)"]
    values, pairs, empty = described.preamble.structured_annotations
    one, two, three = values.expression_list.expressions
    assert (values.name, one.int64_value, two.string_value, three.bool_value) == (
        "list", 1, "two", True,
    )  # fmt: skip
    assert [(p.key, p.value.int64_value, p.value.string_value) for p in pairs.kv_pair_list.kv_pairs
            ] == [("size", -4, ""), ("kind", 0, "x")]  # fmt: skip
    assert (empty.name, empty.WhichOneof("body")) == ("empty", None)


@pytest.mark.p4runtime("6.1.4-2")
def test_a_structured_number_beyond_64_bits_is_refused() -> None:
    table = "@n[0x8000000000000000] table t { actions = { NoAction; } }"
    with pytest.raises(CompileError) as caught:
        p4info(locals=table, body="t.apply();")
    assert str(caught.value) == (
        "case.p4:13:28: error: @n[0x8000000000000000]: 9223372036854775808 is beyond 64 bits"
    )


TYPES = """
@p4runtime_translation("example.com/port", string) type bit<9> port_t;
enum colour_t { Red, Green }
enum bit<8> kind_t { A = 6, B = 255 }
header inner_t { kind_t kind; port_t port; bit<7> rest; }
struct learn_t { port_t port; colour_t colour; kind_t kind; error e; tuple<bool, kind_t> two;
                 inner_t inner; }
"""


@pytest.mark.p4runtime("6.4.8-1 6.4.9-1 8.4.2-1")
def test_digests_and_registers_name_their_types() -> None:
    info = p4info(
        types=TYPES,
        locals="register<kind_t>(2) kinds; register<colour_t>(2) colours;",
        body="learn_t l; digest<learn_t>(1, l); kinds.write(0, l.kind);colours.write(0, l.colour);",
    )
    assert info.registers[0].type_spec.serializable_enum.name == "kind_t"
    assert info.registers[1].type_spec.enum.name == "colour_t"
    described = info.type_info
    specs = [m.type_spec for m in described.structs["learn_t"].members]
    assert [s.WhichOneof("type_spec") for s in specs] == [
        "new_type", "enum", "serializable_enum", "error", "tuple", "header",
    ]  # fmt: skip
    assert specs[4].tuple.members[1].serializable_enum.name == "kind_t"
    assert [m.name for m in described.enums["colour_t"].members] == ["Red", "Green"]
    kinds = described.serializable_enums["kind_t"]
    assert kinds.underlying_type.bitwidth == 8
    assert [(m.name, m.value) for m in kinds.members] == [("A", b"\6"), ("B", b"\xff")]
    assert list(described.error.members)[:3] == ["NoError", "PacketTooShort", "NoMatch"]
    widths = [m.type_spec.bit.bitwidth for m in described.headers["inner_t"].members]
    assert widths == [8, 9, 7]


@pytest.mark.p4runtime("6.2-2")
def test_a_package_says_what_it_asks_of_its_platform() -> None:
    asks = """@platform_property(multicast_group_table_size = 10)
        @platform_property(multicast_group_table_total_replicas = 30)
        @pkginfo(arch = "mine", name = "it") V1Switch"""
    program = compile_source("case.p4", text=text().replace("V1Switch", asks)).program
    package = build_p4info(program).pkg_info
    assert (package.arch, package.name, list(package.annotations)) == ("v1model", "it", [])
    wanted = package.platform_properties
    assert (wanted.multicast_group_table_size, wanted.multicast_group_table_total_replicas) == (
        10, 30,
    )  # fmt: skip


@pytest.mark.p4runtime("6.2.1-2")
def test_a_key_of_the_package_that_is_given_twice_is_refused() -> None:
    twice = '@pkginfo(name = "a") @pkginfo(name = "b") V1Switch'
    program = compile_source("case.p4", text=text().replace("V1Switch", twice)).program
    with pytest.raises(CompileError, match=r'case.p4:18:.*@pkginfo\(name = "b"\): name is given'):
        build_p4info(program)


@pytest.mark.parametrize("first, message", [
    ("@controller_header", 'expected a name, such as "packet_in"'),
    ('@controller_header("packet_in")', "packet_in is another header"),
])  # fmt: skip
def test_controller_headers_have_names_of_their_own(first: str, message: str) -> None:
    headers = f'{first} header a_t {{ bit<8> a; }} @controller_header("packet_in") header b_t {{ }}'
    with pytest.raises(CompileError, match=f"@controller_header: {message}"):
        p4info(types=headers)


def test_what_a_field_of_a_controller_header_is_for_has_no_place() -> None:
    header = '@controller_header("packet_in") header in_t { @brief("where") bit<8> port; }'
    ((field,),) = (h.metadata for h in p4info(types=header).controller_packet_metadata)
    assert (field.name, list(field.annotations)) == ("port", [])


@pytest.mark.p4runtime("6.4.1-5")
def test_a_default_actions_argument_is_translated() -> None:
    info = p4info(
        types=TYPES,
        locals="action go(port_t p) { sm.egress_spec = (bit<9>) p; }"
        "table t { actions = { go; } default_action = go((port_t) 12); }",
        body="t.apply();",
    )
    (argument,) = info.tables[0].initial_default_action.arguments
    assert argument.value == b"12"


def test_an_enum_parameter_sets_a_counters_unit() -> None:
    types = "control C()(CounterType t) { counter(4, t) seen; apply { seen.count(1); } }"
    info = p4info(types=types, locals="C(CounterType.bytes) c;", body="c.apply();")
    assert [c.spec.unit for c in info.counters] == [p4i.CounterSpec.BYTES]


def test_what_is_never_applied_or_called_is_left_out_as_p4c_does() -> None:
    info = p4info(
        types="control C() { action a() { } table t { actions = { a; } } apply { t.apply(); } }",
        locals="C() c; action b() { } action inner() { } action called(bit<8> x) { inner(); }"
        "table t { key = { hdr.h.a : exact; } actions = { b; } }",
        body="called(1); called(2); c.apply();",
    )
    assert [(t.preamble.name, t.preamble.alias) for t in info.tables] == [("I.c.t", "t")]
    listed = {a.preamble.name: len(a.params) for a in info.actions}
    assert listed == {"NoAction": 0, "I.c.a": 0, "I.called": 0}


def test_a_called_actions_name_makes_anothers_alias_longer() -> None:
    info = p4info(
        types="control C() { action a() { } table t { actions = { a; } } apply { t.apply(); } }",
        locals="C() c; action a() { }",
        body="a(); c.apply();",
    )
    aliases = {a.preamble.name: a.preamble.alias for a in info.actions}
    assert aliases == {"NoAction": "NoAction", "I.c.a": "c.a", "I.a": "I.a"}


def test_a_called_action_of_a_table_that_is_never_applied_has_no_data() -> None:
    """P4Info lists the call and not the table, as p4c's does; a device loads the program."""
    table = "table t { actions = { put; } default_action = put(1); }"
    local = f"action put(bit<8> v) {{ hdr.h.a = v; }} {table}"
    program = compile_source("case.p4", text=text(locals=local, body="put(2);")).program
    device = Device(lambda _: program, Switch)
    device.load(program)
    assert device.pipeline is not None
    (action,) = device.pipeline.catalog.p4info.actions
    assert (action.preamble.name, list(action.params)) == ("I.put", [])


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ('@name("ap")', '@name(".bp")', ["ap", "bp"]),
        ("", '@name("x.ap")', ["I.t.implementation", "x.ap"]),
        ('@name("ap")', '@name("ap")', ["ap", "I.ap"]),
    ],
)
def test_a_profile_that_a_table_makes_has_no_control_in_its_name(
    first: str, second: str, names: list[str]
) -> None:
    """p4c 1.2.5.16: HierarchicalNames adds the control to a table's annotations, not to those of
    its properties."""
    made = "implementation = action_profile(8);"
    info = p4info(
        locals=f"""
            table t {{ key = {{ hdr.h.a : exact; }} actions = {{ NoAction; }} {first} {made} }}
            table u {{ key = {{ hdr.h.a : exact; }} actions = {{ NoAction; }} {second} {made} }}
        """,
        body="t.apply(); u.apply();",
    )
    assert [profile.preamble.name for profile in info.action_profiles] == names
    assert [table.implementation_id for table in info.tables] == [
        profile.preamble.id for profile in info.action_profiles
    ]


ERRORS = """
    table t {
        key = { sm.parser_error : exact; hdr.h.a : exact; }
        actions = { NoAction; }
    }
"""


def test_a_key_of_errors_has_no_width_and_goes_by_their_names() -> None:
    """As in p4c 1.2.5.16's P4Info, where an error counts as text."""
    program = compile_source("case.p4", text=text("error { Odd }", ERRORS, "t.apply();")).program
    catalog = Catalog(program)
    ((table,), (info,)) = catalog.p4info.tables, catalog.tables.values()
    assert [(f.bitwidth, f.type_name.name) for f in table.match_fields] == [(0, ""), (8, "")]
    assert list(catalog.p4info.type_info.error.members) == program.errors
    value = info.fields[1].value
    odd = program.errors.index("Odd")
    assert [value.read(data, "here") for data in (b"Odd", b"2")] == [odd, 2]
    assert [value.show(number) for number in (odd, 0, 99)] == [b"Odd", b"NoError", b"99"]
    with pytest.raises(TableError, match="there is no error 'Od'; known: NoError, Packet"):
        value.read(b"Od", "here")


def test_bmv2_gets_a_width_for_a_key_of_errors() -> None:
    """PI cannot write a key without one (p4lang/PI of 2026-06)."""
    program = compile_source("case.p4", text=text("", ERRORS, "t.apply();")).program
    (table,) = p4info_for("bmv2", build_p4info(program), program).tables
    assert [f.bitwidth for f in table.match_fields] == [32, 8]


def test_values_of_serializable_enums_and_default_actions_are_canonical() -> None:
    """p4c 1.2.5.16 pads them to their width; P4Runtime's canonical form is the shortest."""
    info = p4info(
        types="enum bit<12> e_t { A = 0xab }",
        locals="""
            action set(e_t e, bit<16> v) { hdr.h.a = (bit<8>) (bit<12>) e + v[7:0]; }
            table t { actions = { set; } default_action = set(e_t.A, 3); }
        """,
        body="t.apply();",
    )
    assert info.type_info.serializable_enums["e_t"].members[0].value == b"\xab"
    (table,) = info.tables
    assert [a.value for a in table.initial_default_action.arguments] == [b"\xab", b"\3"]


SPECIALISED = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm)(bit<8> n) {
    value_set<bit<8>>(4) known;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a) { known : accept; n : accept; _ : accept; }
    }
}
control V(inout H hdr, inout M m) { apply { } }
control Add(inout H hdr)(bit<8> n) {
    action add() { hdr.h.a = hdr.h.a + n; }
    table t { key = { hdr.h.a : exact; } actions = { add; } default_action = add; }
    apply { t.apply(); }
}
control Unused(inout H hdr) { Add(9) none; apply { none.apply(hdr); } }
control Both(inout H hdr, inout M m, inout standard_metadata_t sm)(bool first) {
    Add(4) inner;
    table s { key = { hdr.h.a : exact; } actions = { NoAction; } }
    apply { if (first) { sm.egress_spec = 1; s.apply(); } inner.apply(hdr); }
}
const bit<8> P_0 = 3;
struct Both_0 { }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(P_0), V(), Both(true), Both(false), V(), D()) main;
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_blocks_that_are_made_with_arguments_are_named_as_p4cs_copies(engine: str) -> None:
    """As in the P4Info of p4c 1.2.5.16: names and ids of a controller that has loaded it."""
    switch = Switch("case.p4", text=SPECIALISED, engine=engine)
    info = build_p4info(switch.program)
    assert {(t.preamble.name, t.preamble.id) for t in info.tables} == {
        ("Both_1.s", 48874485), ("Both_1.inner.t", 43974861), ("Both_2.inner.t", 40019928),
    }  # fmt: skip
    assert [(v.preamble.name, v.preamble.id) for v in info.value_sets] == [("P_0.known", 63415460)]
    assert switch.process(1, b"\1") == [(1, b"\x09")]


def test_a_number_at_a_names_end_is_not_kept_in_a_copys_name() -> None:
    """p4c takes Both_7 for a copy of Both: the first one that is made of it is Both."""
    changed = SPECIALISED.replace("Both", "Both_7").replace("struct Both_7_0 { }", "")
    names = {
        t.preamble.name for t in build_p4info(compile_source("c.p4", text=changed).program).tables
    }
    assert names == {"Both.s", "Both.inner.t", "Both_0.inner.t"}


def test_what_is_made_in_place_for_a_copy_has_a_number_too() -> None:
    """Names of p4c 1.2.5.16."""
    changed = (
        SPECIALISED.replace("(bool first) {", "(bool first, register<bit<8>> kept) {")
        .replace("inner.apply(hdr);", "inner.apply(hdr); kept.write(0, 1);")
        .replace("Both(true)", "Both(true, register<bit<8>>(4))")
        .replace("Both(false)", "Both(false, register<bit<8>>(4))")
    )
    info = build_p4info(compile_source("c.p4", text=changed).program)
    assert [r.preamble.name for r in info.registers] == ["Both_1.kept_0", "Both_2.kept_1"]


def test_a_packages_copies_come_before_those_within_copies() -> None:
    """Names of p4c 1.2.5.16: the Add_0 and Add_1 of Both's copies would be the next ones."""
    names = "inout H hdr, inout M m, inout standard_metadata_t sm"
    changed = (
        SPECIALISED.replace("Add(inout H hdr)", f"Add({names})")
        .replace("inner.apply(hdr)", "inner.apply(hdr, m, sm)")
        .replace("none.apply(hdr);", "")
        .replace("Both(false)", "Add(7)")
    )
    tables = build_p4info(compile_source("c.p4", text=changed).program).tables
    assert {t.preamble.name for t in tables} == {"Both_1.s", "Both_1.inner.t", "Add_0.t"}
