"""gradplane diff: inputs that reach deep, and both switches where simple_switch_grpc is on PATH."""

import shutil
from pathlib import Path

import pytest
from finsy.proto import p4r
from v1programs import source

from gradplane.differ import difference
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.differ.inputs import Inputs, _ends_bmv2
from gradplane.switch.commands.command_registry import CommandError
from gradplane.switch.interp import blocks
from gradplane.switch.interp.trace_events import (
    Applied,
    Called,
    Dropped,
    Rejected,
    StateEntered,
    Trace,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.packet_passes import ENDLESS
from gradplane.switch.source import CompileError
from gradplane.switch.switch import Switch

PROGRAMS = Path(__file__).parents[1] / "switch" / "stf"
ROUTER = PROGRAMS / "exercises" / "router.p4"
TRAFFIC = PROGRAMS.parent / "jit" / "programs" / "traffic.p4"
SELECTORS = TRAFFIC.parent / "tables.p4"
real = pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"
)


def made(seed: int) -> tuple[list[tuple[int, bytes]], Switch]:
    switch = Switch(ROUTER, engine="interpreter")
    inputs = Inputs(switch.program, seed)
    inputs.populate(switch)
    return list(inputs.packets(switch, 100)), switch


def test_a_seed_repeats_its_packets() -> None:
    assert made(3)[0] == made(3)[0] != made(4)[0]


def test_packets_hit_and_miss_the_entries() -> None:
    packets, switch = made(1)
    events = [event for port, packet in packets for event in switch.trace(port, packet).events]
    assert {event.hit for event in events if isinstance(event, Applied)} == {True, False}


def test_packets_that_multiply_are_left_out_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """With these clone sessions most packets become thousands before they are recirculated."""
    switch, traces, trace = Switch(TRAFFIC, engine="interpreter"), [], Switch.trace

    def noted(self: Switch, port: int, packet: bytes) -> Trace:
        traces.append(trace(self, port, packet))
        return traces[-1]

    monkeypatch.setattr(Switch, "trace", noted)
    inputs = Inputs(switch.program, 43)
    inputs.populate(switch)
    assert len(list(inputs.packets(switch, 40))) == 40
    endless = [t for t in traces for e in t.events if getattr(e, "reason", "") in ENDLESS]
    assert endless
    assert max(len(t.events) for t in traces) < 20_000


def test_a_missing_switch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DiffError) as error:
        difference.diff(ROUTER)
    assert str(error.value).startswith("simple_switch_grpc is not on PATH: install BMv2")


@real
def test_a_file_of_entries_that_is_no_text_is_refused_by_line(tmp_path: Path) -> None:
    (file := tmp_path / "entries.txt").write_bytes(b"\xff\xfe table_add")
    with pytest.raises(CommandError, match="entries.txt:1: there is no command"):
        difference.diff(ROUTER, file)


@real
def test_programs_of_other_architectures_are_refused() -> None:
    with pytest.raises(CompileError, match="the program is for psa, not for v1model"):
        difference.diff(PROGRAMS / "psa" / "unicast.p4")


def _compare(folder: str, name: str, packets: int, seed: int) -> difference.DiffResult:
    result = difference.diff(PROGRAMS / folder / f"{name}.p4", packets=packets, seed=seed)
    if "bmv2 has crashed" in result.difference:
        pytest.skip("this BMv2 is built with NDEBUG, and ends at an index beyond an array")
    return result


@real
@pytest.mark.parametrize("name", ["acl", "calculator", "ecmp", "nat", "router", "tunnel"])
def test_both_switches_are_equal(name: str) -> None:
    result = _compare("exercises", name, packets=40, seed=2)
    assert not result.difference, result.text()
    assert (result.packets, result.refused) == (40, ())


@real
def test_p4c_compiles_for_bmv2_too() -> None:
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    result = difference.diff(ROUTER, packets=20, seed=2, compiler="p4c")
    assert not result.difference, result.text()


@real
def test_the_first_difference_comes_with_a_trace(tmp_path: Path) -> None:
    """What a sub-parser changes before it ends in an error is changed here, and not on BMv2."""
    sub = "parser Sub(packet_in p, inout bit<8> x) { state start { x = 9; transition reject; } }"
    (file := tmp_path / "sub.p4").write_text(
        source(
            types=sub,
            parser_locals="Sub() sub;",
            parser="pkt.extract(h.a); sub.apply(pkt, h.a.z); transition accept;",
        )
    )
    result = difference.diff(file, packets=60, seed=1)
    assert "bmv2 sends:" in result.text() and "state start" in result.text()


CELLS = source(
    metadata="bit<8> found;",
    ingress_locals="""
        counter(4, CounterType.packets) seen; register<bit<8>>(8) cells; register<bit<8>>(2) bits;
        meter(4, MeterType.packets) rates;
        action count(bit<32> i) { seen.count(i); bits.write((bit<32>) i[7:0], 1); }
        action store(bit<8> i) { cells.write((bit<32>) i, 1); seen.count((bit<32>) i); }
        action look(bit<2> i) { cells.read(m.found, (bit<32>) i); }
        action mark(bit<32> i) { rates.execute_meter(i, m.found); }
        table t { key = { h.a.x : exact; } actions = { count; store; look; mark; NoAction; } }""",
    ingress="t.apply(); cells.read(m.found, (bit<32>) h.a.y); s.egress_spec = 1;"
    " if (h.a.kind[0:0] == 0) { rates.execute_meter((bit<32>) h.a.y, m.found); }",
)


def test_packets_use_the_cells_that_are_there() -> None:
    """Whether action data or a field is the index: others may end BMv2."""
    switch = Switch("cells.p4", text=CELLS, engine="interpreter")
    inputs = Inputs(switch.program, 1)
    inputs.populate(switch)
    packets = list(inputs.packets(switch, 150))
    events = [event for port, packet in packets for event in switch.trace(port, packet).events]
    used = {(e.name, e.args[0]) for e in events if isinstance(e, Called)}
    assert len(packets) == 150
    arrays = {"I.seen.count": 4, "I.cells.read": 8, "I.rates.execute_meter": 4, "I.bits.write": 2}
    for name, size in arrays.items():
        found = {index for called, index in used if called == name}
        assert found and found <= set(range(size)), name


def test_packets_that_come_back_for_ever_are_left_out() -> None:
    """BMv2 would keep them: every packet of this program whose port is even is such a one."""
    text = ROUTER.read_text()
    start = text.index("apply {", text.index("control I"))
    loop = "apply { if (s.ingress_port[0:0] == 0) { resubmit_preserving_field_list(0); }"
    text = text[:start] + loop + text[start + len("apply {") :]
    switch = Switch(ROUTER, text=text, engine="interpreter")
    packets = list(Inputs(switch.program, 3).packets(switch, 3))
    assert {port % 2 for port, _ in packets} == {1} and len(packets) == 3


def test_packets_that_a_parser_or_a_loop_does_not_let_go_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here a parser may visit so many states, a loop take so many rounds; BMv2 has no such limit.
    Of this program some packets need more than the lowered limits, and all come to an end."""
    monkeypatch.setattr(blocks, "STATE_LIMIT", 4)
    monkeypatch.setattr(ir, "LOOP_LIMIT", 4)
    text = source(
        types="header n_t { bit<8> more; }",
        headers="n_t[9] st;",
        parser="pkt.extract(h.a); transition select(h.a.kind) { 1: more; default: accept; }",
        states="""state more { pkt.extract(h.st.next);
            transition select(h.st.last.more) { 1: more; default: accept; } }""",
        ingress="s.egress_spec = 1; bit<8> n = h.a.y == 1 ? 8w9 : 8w2;"
        " for (bit<8> i = 0; i < n; i = i + 1) { h.a.z = h.a.z + 1; }",
    )
    switch = Switch("rounds.p4", text=text, engine="interpreter")
    packets = [packet for _, packet in Inputs(switch.program, 1).packets(switch, 60)]
    long = bytes([1, 0, 0, 0]) + 6 * b"\1" + b"\0", bytes([0, 0, 1, 0])
    for packet in long:
        assert _ends_bmv2(switch.trace(1, packet).events), packet
    assert len(packets) == 60
    assert all(packet[2] != 1 for packet in packets)
    events = [event for packet in packets for event in switch.trace(1, packet).events]
    assert "ParserTimeout" not in {e.error for e in events if isinstance(e, Rejected)}
    assert "more" in {e.state for e in events if isinstance(e, StateEntered)}


LONG = """
#include <core.p4>
#include <v1model.p4>
header n_t { bit<8> left; }
struct H { n_t n; }
struct M { @field_list(1) bit<8> left; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.n); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        if (s.instance_type == 0) { m.left = s.ingress_port[0:0] == 0 ? 8w210 : 8w190; }
        m.left = m.left - 1;
        if (m.left != 0) { resubmit_preserving_field_list(1); }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_packets_of_very_many_passes_are_taken_to_never_end() -> None:
    """210 passes for even ports, 190 for others: the limit is 200."""
    switch = Switch("long.p4", text=LONG, engine="interpreter")
    packets = list(Inputs(switch.program, 3).packets(switch, 5))
    assert {port % 2 for port, _ in packets} == {1} and len(packets) == 5


DEEP = """
#include <core.p4>
#include <v1model.p4>
header a_t { bit<16> kind; bit<32> key; }
header b_t { bit<8> version; bit<8> flags; }
struct H { a_t a; b_t b; }
struct M { bit<8> copied; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.a); transition select(h.a.kind) { 0x1234: ahead; default: accept; } }
    state ahead { transition select(p.lookahead<b_t>().version) { 7: b; default: accept; } }
    state b { p.extract(h.b); m.copied = h.b.flags; transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action first(bit<9> port) { s.egress_spec = port; }
    action second() { h.a.kind = 1; }
    table t { key = { h.a.key: exact; } actions = { first; NoAction; } }
    table u { key = { h.a.key + 1: exact @name("next"); } actions = { second; NoAction; } }
    apply {
        if (h.b.isValid() && m.copied == 0x55) {
            if (t.apply().hit) { u.apply(); }
        }
        assert(h.a.kind != 2);
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_packets_reach_what_lies_behind_conditions_and_other_tables() -> None:
    switch = Switch("deep.p4", text=DEEP, engine="interpreter")
    inputs = Inputs(switch.program, 1)
    inputs.populate(switch)
    packets = list(inputs.packets(switch, 150))
    events = [event for port, packet in packets for event in switch.trace(port, packet).events]
    assert {e.state for e in events if isinstance(e, StateEntered)} == {"start", "ahead", "b"}
    actions = {event.action for event in events if isinstance(event, Applied) and event.hit}
    assert {"I.first", "I.second"} <= actions
    assert not [event for event in events if isinstance(event, Dropped)]


@real
def test_what_bmv2_refuses_is_left_out_with_what_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    insert = Bmv2Switch.insert

    def refusing(self: Bmv2Switch, entity: p4r.Entity) -> str:
        return "no" if entity.HasField("action_profile_member") else insert(self, entity)

    monkeypatch.setattr(Bmv2Switch, "insert", refusing)
    result = difference.diff(SELECTORS, packets=10)
    assert not result.difference, result.text()
    assert len(result.refused) > result.refused.count("no") > 0
