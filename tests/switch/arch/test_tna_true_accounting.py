"""Counters of Tofino 2 with true egress accounting count what leaves the deparser."""

from __future__ import annotations

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])

COUNTERS = """
    Counter<bit<32>, bit<4>>(10, CounterType_t.BYTES, true) leaving;
    Counter<bit<32>, bit<4>>(10, CounterType_t.BYTES) coming;
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES, true) own;
    action change() { own.count(); h.b.setValid(); h.b.word = 7; }
    action cut() { own.count(32w1); h.a.setInvalid(); }
    table t { key = { h.a.kind : exact; } actions = { change; cut; NoAction; } counters = own; }
"""


def counting(engine: str) -> Switch:
    sw = switch(
        engine, include="t2na.p4", types="header b_t { bit<64> word; }", headers="b_t b;",
        egress_locals=COUNTERS,
        egress="leaving.count((bit<4>) h.a.x); coming.count((bit<4>) h.a.x); t.apply();",
    )  # fmt: skip
    for kind, action in ((1, "change"), (2, "cut")):
        sw.table("t").add({"h.a.kind": kind}, f"egress.{action}")
    return sw


@engines
def test_the_length_is_that_behind_the_deparser(engine: str) -> None:
    sw = counting(engine)
    for kind, times in ((0, 1), (1, 2), (2, 3)):
        for _ in range(times):
            sw.process(0, packet(kind, x=kind, payload=b"x" * 60))
    assert [sw.counter("coming").read(i)[1] for i in range(3)] == [68, 136, 204]
    assert [sw.counter("leaving").read(i)[1] for i in range(3)] == [68, 152, 192]
    entries = sw.state.tables["egress.t"].entries()
    assert [(e.counter.packets, e.counter.bytes) for e in entries] == [(2, 152), (3, 189)]


@engines
def test_a_cell_beyond_the_end_is_not_counted(engine: str) -> None:
    sw = counting(engine)
    sw.process(0, packet(1, x=12))
    assert sum(sw.counter("leaving").bytes.tolist()) == 0
    sw.process(0, packet(0, x=9))
    assert sw.counter("leaving").read(9) == (1, 8)
