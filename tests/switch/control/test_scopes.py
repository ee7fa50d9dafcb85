"""A change of which pipes share a table or extern, taken back: nothing that packets did is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tnaprograms import packet, switch

from gradplane.switch import Switch
from gradplane.switch.control.records import dump
from gradplane.switch.runtime.meters import MeterConfig

PARTS = {
    "ingress_locals": """
        Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) seen;
        DirectCounter<bit<32>>(CounterType_t.PACKETS) hits;
        Meter<bit<8>>(4, MeterType_t.PACKETS) police;
        action set(bit<8> z) { h.a.z = z; hits.count(); }
        action miss() { h.a.z = 0xff; hits.count(); }
        table counted {
            key = { h.a.x: exact; } actions = { set; miss; } default_action = miss();
            entries = { 7 : set(70); } counters = hits;
        }""",
    "ingress": """
        tm.ucast_egress_port = 1; seen.count(h.a.x); h.a.kind = police.execute(0);
        counted.apply();""",
}
APART, TOGETHER = [[0], [1], [2], [3]], [[0, 1, 2, 3]]

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])


class Failed(Exception):
    """Ends a batch."""


@contextmanager
def failing(sw: Switch) -> Iterator[None]:
    """A batch that fails at its end."""
    with pytest.raises(Failed), sw.store.batch():
        yield
        raise Failed


def send(sw: Switch, pipe: int, x: int = 1) -> int:
    ((_, out),) = sw.process(pipe << 7 | 1, packet(x=x))
    return out[3]


def counts(sw: Switch) -> list[int]:
    return [sw.counter("seen", pipe).read(1)[0] for pipe in range(4)]


def hits(sw: Switch, pipe: int = 0) -> tuple[int, int]:
    """Return the packets that hit the source's entry, and those that missed."""
    table = sw.table("counted", pipe).state
    entry = table.find(((7,),))
    assert entry is not None
    return entry.counter.packets, table.default_counter.packets


@engines
def test_what_packets_counted_apart_is_added_to_what_is_shared_again(engine: str) -> None:
    sw = switch(engine, clock=lambda: 1, **PARTS)
    for pipe in range(4):
        send(sw, pipe)
        send(sw, pipe, 7)
    sw.meter("police").write(0, MeterConfig(1, 9, 1, 9))
    sw.table("counted").modify({"h.a.x": 7}, "set", {"z": 77})
    before = dump(sw.store)
    with failing(sw):
        for name in ("seen", "counted", "police"):
            sw.set_scope(name, APART)
        assert counts(sw) == [4, 0, 0, 0]
        assert [hits(sw, pipe) for pipe in range(4)] == [(0, 0)] * 4
        sw.meter("police", pipe=2).write(0, MeterConfig(2, 3, 2, 3))
        for pipe in (0, 2, 2):
            assert send(sw, pipe) == 0xFF
            assert send(sw, pipe, 7) == 70
        sw.table("counted", pipe=2).set_default("set", {"z": 5})
        assert send(sw, 2) == 5
    assert counts(sw) == [8] * 4
    assert hits(sw) == (7, 8)
    assert sw.meter("police").read(0) == MeterConfig(1, 9, 1, 9)
    assert [send(sw, pipe, 7) for pipe in range(4)] == [77] * 4
    for name in ("seen", "counted"):
        assert sw.state.scopes.groups(f"ingress.{name}") == ((0, 1, 2, 3),)
    assert before["scopes"] == dump(sw.store)["scopes"] == {}


@engines
def test_each_pipe_gets_back_what_it_had(engine: str) -> None:
    sw = switch(engine, clock=lambda: 1, **PARTS)
    for name in ("seen", "counted", "police"):
        sw.set_scope(name, APART)
    for pipe in range(4):
        sw.counter("seen", pipe).write(1, 10 * pipe, 0)
        sw.meter("police", pipe).write(0, MeterConfig(pipe, 9, pipe, 9))
        sw.table("counted", pipe).modify({"h.a.x": 7}, "set", {"z": 70 + pipe})
        send(sw, pipe, 7)
    with failing(sw):
        for name in ("seen", "counted", "police"):
            sw.set_scope(name, TOGETHER)
        assert [send(sw, pipe, 7) for pipe in range(4)] == [70] * 4
        for pipe in (3, 3, 1):
            send(sw, pipe)
    assert counts(sw) == [3, 10, 20, 30]  # the first pipe's counter was the shared one
    assert [sw.meter("police", pipe).read(0) for pipe in range(4)] == [
        MeterConfig(pipe, 9, pipe, 9) for pipe in range(4)
    ]
    assert [send(sw, pipe, 7) for pipe in range(4)] == [70, 71, 72, 73]
    assert [hits(sw, pipe) for pipe in range(4)] == [(6, 3), (2, 0), (2, 0), (2, 0)]


def test_a_refused_scope_changes_nothing() -> None:
    sw = switch("interpreter", **PARTS)
    send(sw, 3)
    sw.table("counted").add({"h.a.x": 1}, "set", {"z": 5})
    before = dump(sw.store)
    with pytest.raises(Exception, match="its scope can change while it has no entries"):
        sw.set_scope("counted")
    assert dump(sw.store) == before
