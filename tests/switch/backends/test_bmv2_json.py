"""BMv2's JSON: what is refused, and every packet test of ours on the real switches.

The latter need simple_switch or psa_switch and its CLI on PATH.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from v1programs import source

from gradplane.experiment import p4_programs
from gradplane.switch.source import CompileError

STF = Path(__file__).parents[1] / "stf"
PROGRAMS = sorted([*(STF / "exercises").glob("*.p4"), *(STF / "features").glob("*.p4")])

# Programs that BMv2 itself cannot run as the specification has it, and why.
IMPOSSIBLE = {
    "checksum_invalid": "a checksum block there assigns nothing between checksums",
    "checksum_lists": "a checksum block there assigns nothing",
    "deparser": "a deparser there has no conditions",
    "parser_lookahead": "a parser there does not know the packet's length",
    "command_line": "a value set there is for the whole key of a select",
    "subparser_elements": "a parser error there ends all, also copying a sub-parser's results",
    "table_annotations": "a table there is asked for its hit or its action, not for both",
}
DIFFERENT = {
    "flowlets": "flowlets end by the clock, and a loaded machine is late",
    "queues": "packets wait there by the clock, and in a packet test by the test's",
    "varbit_equality": "fields of variable length are compared as numbers there",
    "priority_delta": "tables with entries in the source take no others there",
}


def compiled(program: str | Path, arch: str | None = None) -> dict[str, Any]:
    found = p4_programs.compiled(Path(program))
    loaded: dict[str, Any] = json.loads(p4_programs.compiled_for("bmv2", found, arch))
    return loaded


def test_names_are_those_of_the_control_plane() -> None:
    """The objects that a controller finds in P4Info are in the JSON, by the same names."""
    found = compiled(STF / "exercises" / "router.p4")
    assert [table["name"] for table in found["pipelines"][0]["tables"]] == ["I.routes"]
    assert found["pipelines"][0]["tables"][0]["key"][0]["name"] == "h.ipv4.dst"
    actions = {action["name"]: action for action in found["actions"]}
    assert actions["I.forward"]["runtime_data"] == [
        {"name": "mac", "bitwidth": 48},
        {"name": "port", "bitwidth": 9},
    ]
    assert [counter["name"] for counter in found["counter_arrays"]] == ["I.sent"]
    assert found["deparsers"][0]["order"] == ["ethernet", "ipv4"]


def test_p4info_has_digests_that_pi_takes() -> None:
    """PI refuses digests of headers, and of anything but bits."""
    info = p4_programs.P4Program(STF / "features" / "digests.p4", {}).p4info("bmv2")
    assert [d.type_spec.struct.name for d in info.digests] == ["learn_t", "data_t"]
    members = info.type_info.structs["data_t"].members
    widths = [(m.name, m.type_spec.bitstring.bit.bitwidth) for m in members]
    assert widths == [("op", 8), ("x", 8), ("y", 8), ("z", 8), ("w", 16)]


def test_the_aggregation_program_is_compiled() -> None:
    assert len(json.dumps(compiled(p4_programs.find_program("thc.p4")))) < 10_000_000


def test_the_compression_program_is_compiled() -> None:
    assert len(json.dumps(compiled(p4_programs.find_program("tos_compress.p4")))) < 10_000_000


UNIONS = """
#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> n; }
header_union u_t { a_t a; a_t b; }
struct H { u_t[3] u; }
struct M { bit<8> n; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.u.next.a); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        m.n = 1;
        m.n = h.u[m.n].a.n;
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_run_time_indices_into_stacks_of_unions_are_refused(tmp_path: Path) -> None:
    """BMv2 1.15.5 loads them and crashes with the first packet."""
    (program := tmp_path / "unions.p4").write_text(UNIONS)
    with pytest.raises(CompileError) as error:
        compiled(program)
    (diagnostic,) = error.value.diagnostics
    text = "BMv2 has no run-time index, and no last, in a stack of header unions"
    assert diagnostic.message == text
    assert (diagnostic.span.file, diagnostic.span.line) == (str(program), 15)


@pytest.mark.parametrize(("last", "aside"), [("bit<4> b", ""), ("varbit<8> b", ", varbit aside")])
def test_headers_of_odd_bits_are_refused(last: str, aside: str, tmp_path: Path) -> None:
    """An assertion of BMv2 ends it when it loads them."""
    program = tmp_path / "odd.p4"
    header = f"header o_t {{ bit<7> a; {last}; }} struct H {{ o_t o; "
    program.write_text(UNIONS.replace("struct H { ", header))
    with pytest.raises(CompileError) as error:
        compiled(program)
    bits = 7 if aside else 11
    message = error.value.diagnostics[0].message
    assert message == f"BMv2 needs headers of whole bytes; header o_t has {bits} bits{aside}"


def test_equal_jumps_in_an_action_are_told_apart() -> None:
    """Both of its returns leave the action at one place."""
    found = compiled(STF.parent / "check" / "accepted" / "tables.p4")
    assert found["pipelines"][0]["tables"]


SIZES = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) seen;
    action set(bit<8> v) { h.h.b = v; }
    action count(bit<8> v) { seen.count(); h.h.b = v; }
    table fixed {
        key = { h.h.a : exact; } actions = { set; } const entries = { 1 : set(1); 2 : set(2); }
    }
    table counted {
        key = { h.h.a : exact; } actions = { count; } counters = seen;
        default_action = count(0); const entries = { 1 : count(1); }
    }
    table first {
        key = { h.h.a : exact; } actions = { set; } entries = { 1 : set(1); 2 : set(2); }
    }
    table given {
        key = { h.h.a : exact; } actions = { set; } size = 5; const entries = { 1 : set(1); }
    }
    table free { key = { h.h.a : exact; } actions = { set; } }
    table none { key = { h.h.a : exact; } actions = { set; } size = 0; }
    apply {
        fixed.apply(); counted.apply(); first.apply(); given.apply(); free.apply(); none.apply();
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.mark.parametrize(
    ("call", "text", "count"),
    [
        ('log_msg("{} of {}.", {h.a, l});', "(kind:{},x:{},y:{},z:{}) of (u:{},v:{}).", 6),
        ('log_msg("{} {} {}", {m.unused, (S) {1, true}});', " {} (u:{},v:{}) \\{\\}", 3),
        ('log_msg("{} {}", {w, m.unused});', "(s:(u:{},v:{}),n:{}) {}", 4),
        ('log_msg("{} {}", l);', " {} {}", 2),
        ('log_msg("{} {} {} {}", h.a);', " {} {} {} {}", 4),
        ('log_msg("x {}", {h.st[m.unused]});', "x (kind:{},x:{},y:{},z:{})", 4),
        ('log_msg("x {}", {m.unused > 3 ? l : w.s});', "x (u:{},v:{})", 2),
        ('log_msg("{}", {m.unused, h.a});', " {} (kind:{},x:{},y:{},z:{})", 5),
        ('log_msg("x {a} {{}} {}", {m.unused});', "x \\{a\\} \\{{}\\} \\{\\}", 1),
        ('U j; log_msg("{}", {j});', "(s:(n:{}),t:(n:{}))", 2),
    ],
)
def test_logs_of_structs_and_headers(call: str, text: str, count: int, tmp_path: Path) -> None:
    """The text is p4c's, where p4c takes them."""
    types = """struct S { bit<8> u; bool v; } struct W { S s; bit<8> n; }
    header n_t { bit<8> n; } header_union U { n_t s; n_t t; }"""
    declared = "S l = {h.a.x, true}; W w = {{1, false}, h.a.y};"
    parts = {"types": types, "headers": "a_t[2] st;", "ingress": f"{declared} {call}"}
    (program := tmp_path / "log.p4").write_text(source(**parts))
    primitives = [p for action in compiled(program)["actions"] for p in action["primitives"]]
    (form, values) = next(p for p in primitives if p["op"] == "log_msg")["parameters"]
    assert (form["value"], len(values["value"])) == (text, count)


def test_logs_of_stacks_are_refused(tmp_path: Path) -> None:
    (program := tmp_path / "log.p4").write_text(
        source(headers="a_t[2] st;", ingress='log_msg("{}", {h.st});')
    )
    with pytest.raises(CompileError, match="error: BMv2 cannot log a header stack"):
        compiled(program)


def test_tables_with_entries_in_the_source_have_room_for_these(tmp_path: Path) -> None:
    """The sizes are those of p4c 1.2.5: its P4Info has the size that the source gives, or 1024."""
    (program := tmp_path / "sizes.p4").write_text(SIZES)
    found = compiled(program)
    tables = found["pipelines"][0]["tables"]
    sizes = {t["name"].removeprefix("I."): t["max_size"] for t in tables}
    assert sizes == dict(fixed=2, counted=1, first=2, given=1, free=1024, none=1024)
    assert [c["size"] for c in found["counter_arrays"]] == [1]
    info = p4_programs.P4Program(program, {}).p4info("bmv2")
    named = {t.preamble.alias: t.size for t in info.tables}
    assert named == dict(fixed=1024, counted=1024, first=1024, given=5, free=1024, none=1024)


def test_another_architecture_is_refused() -> None:
    with pytest.raises(CompileError) as error:
        compiled(STF / "exercises" / "router.p4", arch="psa")
    assert "the program is for v1model, not for psa" in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("checksum", "psa_switch has no Checksum.update"),
        ("internet_checksum", "BMv2's deparsers have no conditions"),
        ("meters", "psa_switch's meters do not take a colour"),
        ("resubmit", "psa_switch keeps no metadata of the kind resubmit; its type must be empty"),
        ("random", "BMv2's random numbers are not negative, as -2 is"),
        ("registers", "BMv2's registers start with 0, not with 48879"),
    ],
)
def test_what_psa_switch_cannot_do_is_refused(name: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        compiled(STF / "psa" / f"{name}.p4")
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["counters", "drops", "multicast", "parser_errors", "router"])
def test_on_psa_switch(name: str, tmp_path: Path) -> None:
    import bmv2_runner

    if not bmv2_runner.available("psa"):
        pytest.skip("psa_switch and psa_switch_CLI are not on PATH")
    assert bmv2_runner.run(STF / "psa" / f"{name}.p4", tmp_path) == []


@pytest.mark.parametrize("name", ["checksum_invalid", "deparser", "parser_lookahead"])
def test_what_bmv2_cannot_do_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(CompileError) as error:
        compiled(STF / "features" / f"{name}.p4")
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.span.line and "BMv2" in diagnostic.message


def test_externs_of_the_users_are_refused_by_name(tmp_path: Path) -> None:
    program = tmp_path / "own.p4"
    action = "extern void seen(in bit<8> x); action see() { seen(1); }"
    program.write_text(source(types=action, ingress="see();"))
    with pytest.raises(CompileError, match="error: BMv2 has no extern seen"):
        compiled(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_on_simple_switch(program: Path, tmp_path: Path) -> None:
    import bmv2_runner

    if not bmv2_runner.available():
        pytest.skip("simple_switch and simple_switch_CLI are not on PATH")
    reason = (IMPOSSIBLE | DIFFERENT).get(program.stem)
    if reason:
        pytest.skip(f"BMv2 differs: {reason}")
    try:
        assert bmv2_runner.run(program, tmp_path) == []
    except bmv2_runner.Crashed:
        pytest.skip("this BMv2 is built with NDEBUG, and ends at an index beyond an array")
