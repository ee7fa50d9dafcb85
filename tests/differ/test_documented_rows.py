"""The tables of docs/coming-from-bmv2.md, "Compare the two": what differs, row by row, in each
engine, and on simple_switch_grpc (behavioral-model 1.15.5) where it is on PATH."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from v1programs import source

from gradplane.controller.targets import Start
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.arch import v1model
from gradplane.switch.compiler import Compiled, compile_source
from gradplane.switch.frontends.bmv2 import read_program

TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> seen; }
header v_t { varbit<16> v; }
header g_t { bit<8> x; bit<56> y; }
header w_t { bit<4160> w; }
header t_t { bit<48> now; bit<8> drawn; }
header n_t { bit<8> v; }
header o_t { bit<8> v; }
header_union u_t { n_t n; o_t o; }
struct two_t { bit<8> x; bit<8> y; }
struct H { h_t h; v_t one; v_t other; w_t w; t_t t; n_t n; u_t u; u_t[2] us; }
struct M { bit<8> x; bit<64> y; g_t g; two_t two; }
parser Sub(packet_in p, inout bit<8> x) {
    state start { x = 9; verify(false, error.NoMatch); transition accept; }
}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    Sub() sub;
    state start {
        p.extract(h.h);
        transition select(h.h.kind) {
            1: bits13; 2: bits64; 3: two_fields; 4: a_field;
            5: to_field; 6: to_header; 7: to_struct; 8: later;
            15: a_header; 17: a_union; 19: a_stack;
            20: lengths; 21: fails; default: accept;
        }
    }
    state a_header { p.extract(h.n); transition accept; }
    state a_union { p.extract(h.u.o); transition accept; }
    state a_stack {
        p.extract(h.us.next.n);
        transition select(h.us.last.n.v) { 7: a_stack; default: accept; }
    }
    state bits13 { transition select(p.lookahead<bit<13>>()) { 1: to_field; default: accept; } }
    state bits64 { transition select(p.lookahead<bit<64>>()) { 1: to_field; default: accept; } }
    state two_fields {
        transition select(p.lookahead<g_t>().x, p.lookahead<g_t>().y) {
            (1, 2): to_field;
            default: accept;
        }
    }
    state a_field { transition select(p.lookahead<g_t>().x) { 1: to_field; default: accept; } }
    state to_field { m.y = p.lookahead<bit<64>>(); transition accept; }
    state to_header { m.g = p.lookahead<g_t>(); transition accept; }
    state to_struct { m.two = p.lookahead<two_t>(); transition accept; }
    state later { p.advance(8); m.x = p.lookahead<bit<8>>(); transition accept; }
    state lengths { p.extract(h.one, 8); p.extract(h.other, 16); transition accept; }
    state fails { sub.apply(p, h.h.seen); transition accept; }
}
control C(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    meter(4, MeterType.packets) rates;
    register<bit<8>>(4) cells;
    counter(4, CounterType.packets) seen;
    action ahead() { h.h.seen = s.parser_error == error.PacketTooShort ? 8w1 : 0; }
    apply {
        bit<8> found = 7;
        s.egress_spec = 1;
        if (h.h.kind <= 8) { ahead(); }
        else if (h.h.kind == 10) { assert(h.h.seen != 0); }
        else if (h.h.kind == 11) { h.w.setValid(); h.w.w = 0; }
        else if (h.h.kind == 12) { s.priority = 3; }
        else if (h.h.kind == 13) { rates.execute_meter(9, found); h.h.seen = found; }
        else if (h.h.kind == 14) { cells.read(found, 9); h.h.seen = found; }
        else if (h.h.kind == 16) { h.h.seen = h.n.v; }
        else if (h.h.kind == 18) { h.u.o.setValid(); h.h.seen = h.u.o.v; }
        else if (h.h.kind == 19) { h.h.seen = h.us[1].n.v; }
        else if (h.h.kind == 22) {
            h.t.setValid();
            h.t.now = s.ingress_global_timestamp;
            random(h.t.drawn, 1, 6);
        }
        else if (h.h.kind == 23) { seen.count(9); }
        else if (h.h.kind == 20) { h.h.seen = h.one.v == h.other.v ? 8w1 : 0; }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
COMPILED = compile_source("rows.p4", text=TEXT)
Process = Callable[[int, bytes], list[tuple[int, bytes]]]


class _OneQueue(Bmv2):
    """A simple_switch_grpc whose ports have one queue, as without options."""

    def command(self, start: Start) -> list[str]:
        return super().command(start)[:-2]


def theirs() -> Iterator[Process]:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Bmv2Switch(_OneQueue("bmv2")) as switch:
        info = p4_programs.p4info_message(COMPILED.program, "bmv2")
        switch.load(info, p4_programs.compiled_for("bmv2", COMPILED).encode())
        yield switch.process


@pytest.fixture(scope="module", params=["interpreter", "jit"])
def here(request: pytest.FixtureRequest) -> Process:
    return Switch(COMPILED.program, engine=request.param).process


@pytest.fixture(scope="module")
def there() -> Iterator[Process]:
    yield from theirs()


@pytest.fixture
def ending() -> Iterator[Process]:
    """Provide a process of its own, which a packet ends."""
    yield from theirs()


@dataclass(frozen=True)
class Row:
    packet: bytes
    here: int | None  # the second byte of what leaves; None: nothing does
    there: int | None


AHEAD = {
    f"lookahead {form}": Row(bytes([kind, 0, 1]), 1, 1)
    for kind, form in enumerate(
        ("of 13 bits in select", "of 64 bits in select", "of two fields", "of a header's field",
         "to a field", "to a header", "to a struct", "in a later place"), 1
    )
}  # fmt: skip
ROWS = {
    "a priority without a queue": Row(bytes([12, 5]), 5, None),
    "fields that differ in their lengths": Row(bytes([20, 5, 5, 0, 5]), 0, 1),
    "a sub-parser that ends in an error": Row(bytes([21, 5]), 9, 5),
    "a header of a union that becomes valid": Row(bytes([18, 5]), 0, 0),
    "last of a stack of unions in select": Row(bytes([19, 5, 7, 9]), 9, 9),
    **AHEAD,
}
BEYOND = {
    "a count beyond its end": Row(bytes([23, 5]), 5, 5),
    "a meter beyond its end": Row(bytes([13, 5]), 0, 7),
    "a register beyond its end": Row(bytes([14, 5]), 0, 7),
}


def second_byte(process: Process, packet: bytes) -> int | None:
    """Return the second byte of the packet that leaves, None if none does."""
    left = process(0, packet)
    return left[0][1][1] if left else None


@pytest.mark.parametrize("row", [*ROWS.values(), *BEYOND.values()], ids=[*ROWS, *BEYOND])
def test_a_row(here: Process, row: Row) -> None:
    assert second_byte(here, row.packet) == row.here


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_there_a_row(there: Process, row: Row) -> None:
    assert second_byte(there, row.packet) == row.there


@pytest.mark.parametrize("row", BEYOND.values(), ids=BEYOND)
def test_there_what_is_beyond_the_end(ending: Process, row: Row) -> None:
    """A build with NDEBUG may crash."""
    try:
        assert second_byte(ending, row.packet) == row.there
    except DiffError as error:
        assert "bmv2 has crashed: simple_switch_grpc ended with signal" in str(error)


@pytest.mark.parametrize("kind", [15, 17], ids=["extracted", "of a union"])
def test_fields_of_an_invalid_header(here: Process, kind: int) -> None:
    """Header n, also after a packet that had it."""
    assert second_byte(here, bytes([kind, 1, 0x55])) == 1
    assert second_byte(here, bytes([16, 1])) == 0


def test_there_fields_of_an_invalid_header_are_an_earlier_packets(there: Process) -> None:
    """But 0 in a header of a union that becomes valid, as in others."""
    for kind in (15, 17):
        assert second_byte(there, bytes([kind, 1, 0x55])) == 1
    assert second_byte(there, bytes([16, 1])) == 0x55
    assert second_byte(there, bytes([18, 1])) == 0


def times_and_numbers(process: Process, count: int) -> list[tuple[int, int]]:
    """Return the timestamp and the random number, 1 to 6, that each of some packets leaves with."""
    left = [process(0, bytes([22, 0]))[0][1] for _ in range(count)]
    return [(int.from_bytes(data[2:8]), data[8]) for data in left]


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_timestamps_are_the_clocks_and_random_numbers_the_seeds(engine: str) -> None:
    now = [1_000]  # in nanoseconds; timestamps are microseconds since the start
    made = [Switch(COMPILED.program, engine=engine, seed=1, clock=lambda: now[0]) for _ in "12"]
    now[0] = 6_000
    first, second = (times_and_numbers(switch.process, 30) for switch in made)
    assert first == second and {time for time, _ in first} == {5}
    assert {drawn for _, drawn in first} == set(range(1, 7))


def test_there_timestamps_and_random_numbers_are_the_machines(there: Process) -> None:
    found = times_and_numbers(there, 30)
    assert all(a < b for (a, _), (b, _) in pairwise(found))
    drawn = {number for _, number in found}
    assert len(drawn) > 1 and drawn <= set(range(1, 7))


def test_what_ends_bmv2_and_not_this_switch(here: Process) -> None:
    """A packet that grows by 520 bytes, and one for which an `assert` fails, which is lost."""
    assert here(0, bytes([11, 5])) == [(1, bytes([11, 5, *bytes(520)]))]
    assert second_byte(here, bytes([10, 0])) is None
    assert second_byte(here, bytes([10, 5])) == 5


@pytest.mark.parametrize("packet", [bytes([11, 5]), bytes([10, 0])], ids=["growth", "assert"])
def test_there_a_packet_ends_the_switch(ending: Process, packet: bytes) -> None:
    assert second_byte(ending, bytes([10, 5])) == 5
    with pytest.raises(DiffError, match="bmv2 has crashed: simple_switch_grpc ended with"):
        ending(0, packet)


def with_run_time_indices() -> bytes:
    """Return the JSON with the unions of the stack chosen by expressions, as p4c writes them."""
    expression: Callable[[Any], Any] = lambda value: {"type": "expression", "value": value}  # noqa: E731
    stack = {"type": "header_union_stack", "value": "us"}
    one = {"type": "hexstr", "value": "0x1"}
    found = expression({"op": "dereference_union_stack", "left": stack, "right": one})
    for op in ("access_union_header", "access_field"):
        found = expression({"op": op, "left": found, "right": 0})

    def chosen(part: Any) -> Any:
        if part == {"type": "field", "value": ["us[1].n", "v"]}:
            return expression(found)
        if isinstance(part, dict):
            return {key: chosen(value) for key, value in part.items()}
        return [chosen(value) for value in part] if isinstance(part, list) else part

    written = json.loads(p4_programs.compiled_for("bmv2", COMPILED))
    assert chosen(written) != written
    return json.dumps(chosen(written)).encode()


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_an_index_into_a_stack_of_unions(engine: str) -> None:
    program = read_program(with_run_time_indices().decode(), "rows.json")
    assert second_byte(Switch(program, engine=engine).process, bytes([19, 5, 7, 9])) == 9


def test_there_it_ends_the_switch() -> None:
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Bmv2Switch(_OneQueue("bmv2")) as switch:
        info = p4_programs.p4info_message(COMPILED.program, "bmv2")
        switch.load(info, with_run_time_indices())
        with pytest.raises(DiffError, match="bmv2 has crashed"):
            switch.process(0, bytes([19, 5, 7, 9]))


LENGTHS = source(
    types="header v_t { varbit<320> v; }",
    headers="v_t v;",
    parser="pkt.extract(h.a); pkt.extract(h.v, (bit<32>) (h.a.x ++ h.a.y)); transition accept;",
    ingress="s.egress_spec = 1; if (h.v.isValid()) { h.a.kind = 1; }"
    " if (s.parser_error == error.ParserInvalidArgument) { h.a.z = 1; }"
    " else if (s.parser_error == error.HeaderTooShort) { h.a.z = 2; }"
    " else if (s.parser_error != error.NoError) { h.a.z = 3; }",
    egress="h.a.x = s.egress_spec[8:1]; h.a.y = (bit<8>) s.egress_spec[0:0];",
)
BITS = {12: 1, 328: 2, 321: 1, 320: 0, 16: 0}  # z by the length
REST = bytes(range(50))


class _DropPort(_OneQueue):
    """A simple_switch_grpc with a drop port."""

    def __init__(self, port: int) -> None:
        super().__init__("bmv2")
        self._port = port

    def command(self, start: Start) -> list[str]:
        return [*super().command(start), "--drop-port", str(self._port)]


@contextmanager
def running(compiled: Compiled, target: Bmv2, config: bytes | None = None) -> Iterator[Process]:
    """Provide simple_switch_grpc with a program; config: the JSON, by default ours."""
    if shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Bmv2Switch(target) as switch:
        info = p4_programs.p4info_message(compiled.program, "bmv2")
        switch.load(info, config or p4_programs.compiled_for("bmv2", compiled).encode())
        yield switch.process


@pytest.mark.parametrize("which", ["interpreter", "jit", "simple_switch_grpc"])
def test_lengths_that_do_not_fit_and_where_egress_begins(which: str) -> None:
    """The header stays invalid, and its bytes are payload; egress_spec is the drop port plus 1."""
    compiled = compile_source("lengths.p4", text=LENGTHS)
    if which != "simple_switch_grpc":
        check_lengths(Switch(compiled.program, engine=which, drop_port=100).process)
        return
    with running(compiled, _DropPort(100)) as process:
        check_lengths(process)


def check_lengths(process: Process) -> None:
    for bits, code in BITS.items():
        data = bytes([0, bits >> 8, bits & 255, 0]) + REST
        left = bytes([int(code == 0), 101 >> 1, 101 & 1, code]) + REST
        assert process(0, data) == [(1, left)], bits


def test_there_packets_come_in_by_the_drop_port() -> None:
    """And none leaves by it. Here it has no interface (tests/switch/ports/test_options.py)."""
    compiled = compile_source("in.p4", text=source(ingress="s.egress_spec = (bit<9>) h.a.x;"))
    with running(compiled, _DropPort(0)) as process:
        assert process(0, bytes([0, 1, 0, 0])) == [(1, bytes([0, 1, 0, 0]))]
        assert process(1, bytes(4)) == []


@pytest.mark.parametrize("which", ["interpreter", "jit", "simple_switch_grpc"])
def test_a_field_that_ones_own_v1model_adds(which: str, tmp_path: Path) -> None:
    own = (Path(v1model.__path__[0]) / "include" / "v1model.p4").read_text()
    priority = '@alias("intrinsic_metadata.priority") bit<3> priority;'
    added = f'{priority} @alias("queueing_metadata.qid") bit<5> qid;'
    (tmp_path / "v1model.p4").write_text(own.replace(priority, added))
    text = source(ingress="s.egress_spec = 1; s.priority = 3;", egress="h.a.x = (bit<8>) s.qid;")
    compiled = compile_source("own.p4", [tmp_path], text=text)
    if which != "simple_switch_grpc":
        assert second_byte(Switch(compiled.program, engine=which).process, bytes(4)) == 0
        return
    with running(compiled, Bmv2("bmv2")) as process:  # with eight queues
        assert second_byte(process, bytes(4)) == 3


LAST = source(
    types="header n_t { bit<8> v; } header o_t { bit<8> v; } header_union u_t { n_t n; o_t o; }",
    headers="u_t[2] us;",
    parser="pkt.extract(h.a); pkt.extract(h.us.next.n); transition read;",
    states="state read { h.a.x = h.us.last.n.v; transition accept; }",
)


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_last_of_a_stack_of_unions(engine: str) -> None:
    program = compile_source("last.p4", text=LAST).program
    assert second_byte(Switch(program, engine=engine).process, bytes([0, 1, 2, 3, 9])) == 9


def test_there_last_of_a_stack_of_unions_ends_the_switch(tmp_path: Path) -> None:
    """With p4c's JSON; ours is refused."""
    if shutil.which("p4c-bm2-ss") is None:
        pytest.skip("p4c-bm2-ss is not on PATH")
    (tmp_path / "last.p4").write_text(LAST)
    words = ["p4c-bm2-ss", "--Wdisable", "-o", "last.json", "last.p4"]
    subprocess.run(words, cwd=tmp_path, check=True)
    config = (tmp_path / "last.json").read_bytes()
    with (
        running(compile_source("last.p4", text=LAST), _OneQueue("bmv2"), config) as process,
        pytest.raises(DiffError, match="bmv2 has crashed"),
    ):
        process(0, bytes([0, 1, 2, 3, 9]))
