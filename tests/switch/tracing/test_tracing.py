"""Traces of chosen packets of a running switch: chosen rightly, and nothing else is different."""

from __future__ import annotations

import random
import threading

import pytest
from v1programs import packet, source

from gradplane.switch import Switch
from gradplane.switch.daemon.bmv2_log import Bmv2Log
from gradplane.switch.packet_tracing import WAITING, Tracing
from gradplane.switch.runtime.packet_buffers import pack

# Each packet leaves with the number of packets before it, which a register keeps.
COUNTING = {
    "ingress_locals": "register<bit<8>>(1) seen; counter(4, CounterType.packets) kinds;"
    "action go() { s.egress_spec = s.ingress_port; } action stop() { mark_to_drop(s); }"
    "table t { key = { h.a.kind: exact; } actions = { go; stop; } default_action = stop(); }",
    "ingress": "seen.read(h.a.x, 0); seen.write(0, h.a.x + 1); kinds.count((bit<32>) h.a.kind);"
    "if (h.a.kind == 3) { digest<bit<8>>(1, h.a.x); } t.apply();",
}
ENGINES = ("jit", "interpreter")


def made(engine: str) -> Switch:
    sw = Switch("test.p4", text=source(**COUNTING), engine=engine, clock=lambda: 0)
    for kind in (0, 1, 3):
        sw.table("t").add({"kind": kind}, "go")
    return sw


@pytest.mark.parametrize("engine", ENGINES)
def test_the_next_packets_of_a_port_where_a_filter_holds(engine: str) -> None:
    sw = made(engine)
    tracing = sw.tracing(port=2, where="h.a.kind == 1", count=2)
    for port, kind in ((1, 1), (2, 0), (2, 1), (1, 1), (2, 1), (2, 1)):
        sw.process(port, packet(kind, 0, 0, 0))
    traces = list(tracing)
    assert [(t.port, t.outputs) for t in traces] == [
        (2, [(2, packet(1, 2, 0, 0))]),
        (2, [(2, packet(1, 4, 0, 0))]),
    ]
    assert "table I.t (h.a.kind 1): hit h.a.kind 0x1; action I.go()" in traces[0].text()
    assert traces[0].json()["packet"] == packet(1, 0, 0, 0).hex()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_is_processed_as_if_nothing_was_traced(engine: str) -> None:
    chance = random.Random(1)
    kinds = [chance.randrange(4) for _ in range(300)]
    ports = [chance.randrange(1, 4) for _ in kinds]
    packets = [packet(kind, 0, i % 256, 0) for i, kind in enumerate(kinds)]
    plain, traced = made(engine), made(engine)
    expected = plain.process_batch(ports, packets)
    with traced.tracing(port=2) as by_port, traced.tracing(where="h.a.kind == 3") as by_field:
        assert traced.process_batch(ports, packets) == expected
        results = traced.process_buffer(*pack(ports, packets))
    again = plain.process_buffer(*pack(ports, packets))
    assert all((a == b).all() for a, b in zip(results, again, strict=True))
    assert [m.data for m in traced.messages()] == [m.data for m in plain.messages()]
    assert traced.register("seen").read(0) == plain.register("seen").read(0)
    assert traced.counter("kinds").read(3) == plain.counter("kinds").read(3)
    assert traced.state.drops == plain.state.drops
    assert [t.packet for t in by_port] == [
        p for port, p in zip(ports, packets, strict=True) if port == 2
    ] * 2
    assert [t.packet for t in by_field] == [
        p for kind, p in zip(kinds, packets, strict=True) if kind == 3
    ] * 2


def test_two_who_want_the_same_packet_get_the_same_trace() -> None:
    sw = made("jit")
    with sw.tracing(count=1) as one, sw.tracing(port=1) as other:
        sw.process(1, packet(1, 0, 0, 0))
        assert one.get(1) is other.get(1)
    assert sw.register("seen").read(0) == 1


def test_waiting_ends_when_it_is_closed() -> None:
    sw = made("jit")
    tracing = sw.tracing()
    reader = threading.Thread(target=list, args=(tracing,))
    reader.start()
    tracing.close()
    reader.join(10)
    assert not reader.is_alive()
    sw.process(1, packet(1, 0, 0, 0))
    assert tracing.get(0) is None
    tracing.close()


def test_get_waits_no_longer_than_its_timeout() -> None:
    with made("jit").tracing() as tracing, pytest.raises(TimeoutError) as late:
        tracing.get(0.01)
    assert str(late.value) == "no packet was traced within 0.01 s"


def test_none_are_wanted_of_none() -> None:
    sw = made("jit")
    tracing = sw.tracing(count=0)
    sw.process(1, packet(1, 0, 0, 0))
    assert list(tracing) == []


def test_a_reader_that_does_not_read_gets_no_further_traces() -> None:
    sw = made("jit")
    with sw.tracing() as tracing:
        outputs = sw.process_batch([1] * (WAITING + 5), [packet(1, 0, 0, 0)] * (WAITING + 5))
        assert tracing.get(0) is not None
        outputs += sw.process_batch([1, 1], [packet(1, 0, 0, 0)] * 2)
    assert len(outputs) == WAITING + 7
    assert len(list(tracing)) == WAITING


def test_a_watcher_of_ones_own() -> None:
    class Lengths(Tracing):
        lengths: list[int]

        def deliver(self, trace: object) -> None:
            self.lengths.append(len(trace.packet))  # type: ignore[attr-defined]

    sw, watcher = made("jit"), Lengths(None, None, None, end=lambda tracing: None)
    watcher.lengths = []
    sw.watch(watcher)
    sw.process_batch([1, 2], [packet(1, 0, 0, 0), packet(1, 0, 0, 0, b"more")])
    assert watcher.lengths == [4, 8]


def test_which_member_of_a_profile_runs() -> None:
    text = source(
        ingress_locals="""
            action to(bit<9> port) { s.egress_spec = port; }
            action_selector(HashAlgorithm.identity, 16, 8) members;
            table t {
                key = { h.a.x : exact; h.a.y : selector; h.a.z : selector; }
                actions = { to; }
                implementation = members;
            }""",
        ingress="t.apply();",
    )
    sw = Switch("test.p4", text=text)
    profile, table = sw.profile("members"), sw.table("t")
    for member in (4, 5, 6):
        profile.add_member(member, "to", {"port": 3})
    profile.add_group(7, [5, 6])
    profile.add_group(8, [])
    table.add({"h.a.x": 1}, member=4)
    table.add({"h.a.x": 2}, group=7)
    table.add({"h.a.x": 3}, group=8)

    def line(x: int, z: int) -> str:
        events = sw.trace(1, bytes([0, x, 9, z, 0])).events
        (text,) = (event.text() for event in events if event.kind == "table")
        return text.partition(": ")[2]

    assert line(1, 0) == "hit h.a.x 0x1; member 4; action I.to(port 3)"
    assert line(2, 0) == "hit h.a.x 0x2; group 7, member 5 by h.a.y 9, h.a.z 0; action I.to(port 3)"
    assert line(2, 1) == "hit h.a.x 0x2; group 7, member 6 by h.a.y 9, h.a.z 1; action I.to(port 3)"
    assert line(3, 0).startswith("hit h.a.x 0x3; group 8, which is empty; action ")
    log = Bmv2Log(sw.program, trace_level=False).text(sw.trace(1, bytes([0, 2, 9, 1, 0])))
    assert "Choosing member 6 from group 7\n" in log
