"""The tables of docs/coming-from-bmv2.md, "Compare the two": what differs, row by row, in each
engine, and on simple_switch_grpc (behavioral-model 1.15.5) where it is on PATH."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from gradplane.controller.targets import Start
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source

TEXT = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> seen; }
header v_t { varbit<16> v; }
header g_t { bit<8> x; bit<56> y; }
header w_t { bit<4160> w; }
struct two_t { bit<8> x; bit<8> y; }
struct H { h_t h; v_t one; v_t other; w_t w; }
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
            20: lengths; 21: fails; default: accept;
        }
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
        info = p4_programs.p4info(COMPILED.program, "bmv2")
        switch.load(info.encode(), p4_programs.compiled_for("bmv2", COMPILED).encode())
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
    "a meter beyond its end": Row(bytes([13, 5]), 0, 7),
    "a register beyond its end": Row(bytes([14, 5]), 0, 7),
    "fields that differ in their lengths": Row(bytes([20, 5, 5, 0, 5]), 0, 1),
    "a sub-parser that ends in an error": Row(bytes([21, 5]), 9, 5),
    **AHEAD,
}


def second_byte(process: Process, packet: bytes) -> int | None:
    """Return the second byte of the packet that leaves, None if none does."""
    left = process(0, packet)
    return left[0][1][1] if left else None


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row(here: Process, row: Row) -> None:
    assert second_byte(here, row.packet) == row.here


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_there_a_row(there: Process, row: Row) -> None:
    assert second_byte(there, row.packet) == row.there


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
