"""Packets in the switch's own queues: when they leave, what egress finds, and which are dropped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psaprograms import source as psa_source
from v1programs import packet, source

from gradplane.switch import Switch, SwitchError
from gradplane.switch.runtime.control_messages import Fault, PacketIn
from gradplane.switch.runtime.egress_queues import NO_QUEUE, EgressQueues
from gradplane.switch.runtime.links import Links

ENGINES = ["interpreter", "jit"]
MS = 1_000_000
SHOWS_DEPTHS = source(
    ingress="s.egress_spec = (bit<9>) h.a.x; s.priority = h.a.kind[2:0];",
    egress="h.a.y = (bit<8>) s.enq_qdepth; h.a.z = (bit<8>) s.deq_qdepth;",
)
SHOWS_TIMES = source(
    ingress="s.egress_spec = 1;",
    egress="h.a.x = (bit<8>) (s.enq_timestamp / 1000); h.a.y = (bit<8>) (s.deq_timedelta / 1000);"
    "h.a.z = (bit<8>) (s.egress_global_timestamp / 1000);",
)


class World:
    """A switch on a clock that the test moves."""

    def __init__(self, engine: str, text: str, priorities: int | None = None, **given: Any) -> None:
        self.now = 7 * MS
        links = Links(queues=EgressQueues(priorities))
        self.switch = Switch(
            "test.p4", text=text, engine=engine, clock=lambda: self.now, links=links, **given
        )
        self.queues = self.switch.queues

    def at(self, ms: float) -> list[tuple[int, bytes]]:
        """Let packets leave so many ms after the start."""
        self.now = 7 * MS + round(ms * MS)
        return self.switch.poll()


@pytest.mark.parametrize("engine", ENGINES)
def test_packets_leave_at_the_queues_rate(engine: str) -> None:
    world = World(engine, SHOWS_TIMES)
    world.queues.set_rate(100, 1)  # every 10 ms
    world.now += 3 * MS
    assert [world.switch.process(0, packet(i, payload=b"abc")) for i in range(3)] == [[], [], []]
    assert world.switch.next_departure() == world.now
    assert world.at(3) == [(1, packet(0, 3, 0, 3, b"abc"))]
    assert world.switch.next_departure() == 20 * MS
    assert world.at(12) == []
    assert world.at(13) == [(1, packet(1, 3, 10, 13, b"abc"))]
    assert world.at(30) == [(1, packet(2, 3, 27, 30, b"abc"))]  # the caller was late
    assert world.switch.next_departure() is None
    assert world.switch.process(0, packet(9)) == []
    assert world.at(33) == [(1, packet(9, 30, 3, 33))]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_full_queue_drops_what_comes(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS)
    world.queues.set_rate(1000, 5)
    world.queues.set_depth(3, 5)
    frames = [packet(i, 5) for i in range(5)] + [packet(8, 6)]
    assert world.switch.process_batch([0] * 6, frames) == [(5, 6, packet(8, 6))]
    assert world.switch.state.drops == {"the queue of port 5 is full": 2}
    assert world.queues.dropped(5) == 2
    assert world.at(50) == [(5, packet(i, 5, i, 2 - i)) for i in range(3)]


@pytest.mark.parametrize("engine", ENGINES)
def test_higher_priorities_go_first(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS, priorities=4)
    world.queues.set_rate(1000)
    for kind in (0, 3, 1, 3, 4, 7):
        world.switch.process(0, packet(kind, 2))
    assert world.switch.state.drops == {NO_QUEUE: 2}
    assert [data[0] for _, data in world.at(0)] == [3, 1, 0]
    assert [data[0] for _, data in world.at(1)] == [3]
    world.queues.set_depth(0, 2, 1)
    world.switch.process(0, packet(1, 2))
    assert world.switch.state.drops["queue 1 of port 2 is full"] == 1
    with pytest.raises(SwitchError, match="priority 4: port 2 has queues 0 to 3; start the switch"):
        world.queues.set_rate(1, 2, 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_priorities_are_checked_without_a_rate_too(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS, priorities=2)
    assert world.switch.process(0, packet(1, 2)) == [(2, packet(1, 2))]
    assert world.switch.process(0, packet(2, 2)) == []
    assert world.switch.state.drops == {NO_QUEUE: 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_when_a_rate_is_taken_away_packets_keep_their_order(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS)
    world.queues.set_rate(100)
    for i in range(3):
        world.switch.process(0, packet(i, 1))
    world.queues.set_rate(0)
    world.switch.process(0, packet(3, 1))
    assert [data[0] for _, data in world.at(20)] == [0, 1, 2, 3]
    assert not world.queues.engaged
    assert world.switch.process(0, packet(4, 1)) == [(1, packet(4, 1))]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_paces_its_port_by_the_bytes_that_leave(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS)
    world.queues.pace(1, 8_000_000, 3)  # a byte in a microsecond
    frame = packet(0, 1, payload=bytes(996))
    for _ in range(2):
        world.switch.process(0, frame)
    assert [data[2:4] for _, data in world.at(0)] == [bytes([0, 1])]
    for _ in range(3):  # one is on the link, two may wait
        world.switch.process(0, frame)
    assert world.switch.state.drops == {"the queue of port 1 is full": 2}
    assert world.at(0.999) == []
    assert [data[2:4] for _, data in world.at(1)] == [bytes([1, 1])]
    assert [data[2:4] for _, data in world.at(9)] == [bytes([1, 0])]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_paces_a_queue_and_not_the_others(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS, priorities=2)
    world.queues.shape(1, 8_000_000, priority=1)  # a byte in a microsecond
    slow, fast = packet(1, 1, payload=bytes(996)), packet(0, 1)
    for frame in (slow, slow, fast, fast):
        assert world.switch.process(0, frame) == []
    assert [data[0] for _, data in world.at(0)] == [1, 0, 0]
    assert world.switch.next_departure() == 8 * MS
    assert world.at(0.999) == []
    assert [data[0] for _, data in world.at(1)] == [1]
    world.queues.shape(1, 0, priority=1)
    assert world.switch.process(0, slow) == [(1, slow)]
    with pytest.raises(SwitchError, match="queue rate -1: expected 0 to 4398046511103 bits"):
        world.queues.shape(1, -1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_port_and_its_queue_may_both_be_paced(engine: str) -> None:
    world = World(engine, SHOWS_DEPTHS, priorities=2)
    world.queues.shape(1, 8_000_000)
    world.queues.shape(1, 4_000_000, priority=1)
    for kind in (1, 1, 0, 0):
        world.switch.process(0, packet(kind, 1, payload=bytes(996)))
    left = [[data[0] for _, data in world.at(ms)] for ms in (0, 1, 2, 3)]
    assert left == [[1], [0], [1], [0]]


@pytest.mark.parametrize("engine", ENGINES)
def test_clones_and_replicas_wait_and_what_recirculates_comes_again(engine: str) -> None:
    text = source(
        metadata="@field_list(1) bit<8> kept;",
        ingress="s.mcast_grp = 1; m.kept = 9; h.a.x = h.a.x + 1;"
        "clone_preserving_field_list(CloneType.I2E, 5, 1);",
        egress="h.a.y = (bit<8>) s.instance_type; h.a.z = (bit<8>) s.egress_rid;"
        "if (s.instance_type == 1) { h.a.kind = m.kept; }"
        "if (s.egress_rid == 7 && h.a.x < 3) { recirculate_preserving_field_list(1); }",
    )
    world = World(engine, text)
    world.switch.multicast(1, [(2, 6), (2, 7)])
    world.switch.clone_session(5, [3], truncate=3)
    world.queues.set_rate(1000, 2)
    start = packet(payload=b"tail")
    assert world.switch.process(0, start) == [(3, packet(9, 0, 1)[:3])]
    assert world.at(0) == [(2, packet(0, 1, 5, 6, b"tail"))]
    # The second replica recirculates: what comes of it leaves, or waits again.
    assert world.at(1) == [(3, packet(9, 1, 1)[:3])]
    assert world.at(2) == [(2, packet(0, 2, 5, 6, b"tail"))]
    assert world.at(3) == [(3, packet(9, 2, 1)[:3])]
    assert world.at(9) == [(2, packet(0, 3, 5, n, b"tail")) for n in (6, 7)]
    assert world.switch.next_departure() is None


@pytest.mark.parametrize("engine", ENGINES)
def test_poll_once_returns_what_recirculates(engine: str) -> None:
    world = World(engine, source(egress="h.a.x = h.a.x + 1; recirculate_preserving_field_list(0);"))
    world.queues.set_rate(1000)
    assert world.switch.run_once(0, packet()) == ([], [])
    left, again = world.switch.poll_once()
    assert left == [] and [a.packet for a in again] == [packet(0, 1)]
    assert world.switch.run_once(0, again[0]) == ([], [])
    assert world.queues.waiting == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_messages_of_packets_that_leave_together_come_in_their_order(engine: str) -> None:
    text = source(ingress="s.egress_spec = 3;", egress="assert(h.a.kind != 1);")
    world = World(engine, text, cpu_port=3)
    world.queues.set_rate(100)
    for kind in (0, 1, 2, 1, 3):
        world.switch.process(0, packet(kind))
    assert world.at(100) == []
    kinds = [m.packet[0] if isinstance(m, PacketIn) else type(m) for m in world.switch.messages()]
    assert kinds == [0, Fault, 2, Fault, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_psa_packets_wait_by_their_class_of_service(engine: str) -> None:
    text = psa_source(
        ingress="send_to_port(o, (PortId_t) 4);"
        "o.class_of_service = (ClassOfService_t) (ClassOfServiceUint_t) h.a.kind;",
        egress="h.a.y = (bit<8>) (ClassOfServiceUint_t) s.class_of_service;",
    )
    world = World(engine, text, priorities=3)
    world.queues.set_rate(1000, 4)
    for kind in (1, 2, 2, 3):
        assert world.switch.process(0, packet(kind, payload=bytes([kind]) * 300)) == []
    assert world.switch.state.drops == {NO_QUEUE: 1}
    left = world.at(1)
    assert [(port, data[0], data[2], len(data)) for port, data in left] == [
        (4, 2, 2, 304), (4, 2, 2, 304), (4, 1, 1, 304)
    ]  # fmt: skip
    assert [data[4:] for _, data in left] == [bytes([kind]) * 300 for kind in (2, 2, 1)]


def test_a_trace_is_delivered_when_the_packet_has_left() -> None:
    world = World("jit", source())
    world.queues.set_rate(100)
    with world.switch.tracing() as traces:
        world.switch.process(0, packet(1))
        world.switch.process(0, packet(2))
        assert world.at(0) == [(1, packet(1))]
        assert traces.get(timeout=30).outputs == [(1, packet(1))]  # type: ignore[union-attr]
        world.at(10)
    [trace] = traces
    lines = [line.split("    [v1model/path.p4:")[0] for line in trace.text().splitlines()]
    assert lines[-3:] == [
        "  in queue 0 of port 1, behind 1 packets",
        "== egress, port 1",
        "  sent to port 1, 4 bytes: 02000000",
    ]


def test_packets_of_a_program_that_was_replaced_are_dropped_and_counted() -> None:
    world = World("jit", SHOWS_DEPTHS)
    world.queues.set_rate(100)
    world.switch.process(0, packet(1, 1))
    links = world.switch.state.links
    new = Switch("test.p4", text=SHOWS_DEPTHS, clock=lambda: world.now, links=links)
    assert new.poll() == []
    assert sum(new.state.drops.values()) == 1


def test_settings_that_cannot_be_are_refused() -> None:
    queues = EgressQueues()
    with pytest.raises(SwitchError, match="queue rate -1: expected 0 to 4294967295 packets a sec"):
        queues.set_rate(-1)
    with pytest.raises(SwitchError, match="port 512: ports 0 to 511 have queues"):
        queues.set_depth(3, 512)
    with pytest.raises(SwitchError, match="9 priority queues: a port has 1 to 8"):
        EgressQueues(9)


# Everything that a packet can do, chosen by its bytes.
BUSY = source(
    metadata="@field_list(1) bit<8> kept;",
    ingress_locals="register<bit<32>>(4) seen;",
    ingress="bit<32> n; seen.read(n, 0); seen.write(0, n * 31 + (bit<32>) h.a.kind);"
    "s.egress_spec = (bit<9>) h.a.x[1:0]; s.priority = h.a.kind[2:0]; m.kept = h.a.kind;"
    "if (h.a.kind[3:3] == 1) { s.mcast_grp = 1; }"
    "if (h.a.kind[4:4] == 1) { clone_preserving_field_list(CloneType.I2E, 5, 1); }"
    "if (h.a.kind[5:5] == 1 && s.instance_type == 0) { resubmit_preserving_field_list(1); }"
    "if (h.a.kind == 255) { mark_to_drop(s); }",
    egress_locals="register<bit<32>>(4) left;",
    egress="bit<32> n; left.read(n, 1); n = n * 33 + (bit<32>) h.a.kind + (bit<32>) s.deq_qdepth;"
    "left.write(1, n); h.a.y = (bit<8>) s.enq_qdepth; h.a.z = (bit<8>) n;"
    "n = s.enq_timestamp + s.deq_timedelta; left.write(2, n);"
    "if (h.a.kind[6:6] == 1 && s.instance_type != 2) {"
    "  clone_preserving_field_list(CloneType.E2E, 6, 1); }"
    "if (h.a.kind[7:7] == 1 && s.instance_type == 0) { h.a.kind = h.a.kind & 0x0f;"
    "  recirculate_preserving_field_list(1); }",
)
STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 255), st.integers(0, 3)), min_size=1, max_size=12),
        st.integers(0, 4),
    ),
    max_size=12,
)


def _run(engine: str, steps: list[Any], priorities: int | None) -> list[Any]:
    world = World(engine, BUSY, priorities)
    world.switch.multicast(1, [(1, 1), (2, 2), (1, 3)])
    world.switch.clone_session(5, [3, 2])
    world.switch.clone_session(6, [1], truncate=6)
    world.queues.set_rate(1000, 1)
    world.queues.set_depth(4, 1)
    world.queues.set_rate(700, 2)
    world.queues.pace(3, 32_000, 3)
    world.queues.shape(2, 24_000, priority=0)
    seen: list[Any] = []
    ms = 0.0
    for step in steps:
        if isinstance(step, int):
            ms += step / 2
            seen.append(world.at(ms))
        else:
            frames = [packet(kind, x, payload=bytes([kind, x, 5])) for kind, x in step]
            seen.append(world.switch.process_batch([0] * len(step), frames))
    seen.append(world.at(ms + 1000))
    state = world.switch.state
    drops = dict(sorted(state.drops.items()))
    values = [r.read(i) for r in state.registers.values() for i in range(4)]
    return [*seen, drops, values, world.queues.status()]


@given(steps=STEPS, priorities=st.sampled_from([None, 1, 4, 8]))
def test_both_engines_queue_alike(steps: list[Any], priorities: int | None) -> None:
    assert _run("jit", steps, priorities) == _run("interpreter", steps, priorities)
