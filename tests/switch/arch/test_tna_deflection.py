"""Deflection on drop: a packet that finds its queue full goes to another, if it asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from tnaprograms import packet, source, switch

from gradplane.switch import Switch
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links

engines = pytest.mark.parametrize("engine", ["interpreter", "jit"])

# x is the port, bit 0 of kind asks for deflection; egress tells its port, queue and flag.
PARTS = {
    "ingress": "tm.ucast_egress_port = (bit<9>) h.a.x; tm.deflect_on_drop = h.a.kind[0:0];",
    "egress": """h.a.y = (bit<8>) eg.egress_port; h.a.z = (bit<8>) eg.egress_qid;
                 h.a.kind = 7w0 ++ eg.deflection_flag;""",
}


def limited(engine: str, depth: int = 1, **parts: Any) -> Switch:
    """A switch whose port 9 lets a packet leave each second and holds `depth` others."""
    sw = switch(engine, **PARTS, **parts)
    sw.queues.set_rate(1, 9)
    sw.queues.set_depth(depth, 9)
    return sw


@engines
def test_a_packet_is_deflected_from_a_full_queue(engine: str) -> None:
    sw = limited(engine)
    sw.queues.deflections[9] = (5, 0)
    for kind in (1, 1, 0, 1):  # the first waits in its queue, the third does not ask for it
        assert sw.process(0, packet(kind, x=9)) == []
    deflected = packet(1, x=9, y=5)
    assert sw.poll() == [(9, packet(0, x=9, y=9)), (5, deflected), (5, deflected)]
    assert dict(sw.state.drops) == {"the queue of port 9 is full": 1}
    assert sw.queues.dropped(9) == 3  # as its counter of drops says
    assert sw.process(0, packet(1, x=5)) == [(5, packet(0, x=5, y=5))]


@engines
def test_without_a_place_or_when_that_is_full_it_is_dropped(engine: str) -> None:
    sw = limited(engine)
    for _ in range(2):
        sw.process(0, packet(1, x=9))
    assert dict(sw.state.drops) == {"the queue of port 9 is full": 1}
    sw.queues.deflections[9] = (5, 0)
    sw.queues.set_depth(1, 5)
    for _ in range(2):
        sw.process(0, packet(1, x=9))
    assert dict(sw.state.drops) == {"the queue of port 9 is full": 2}
    assert [port for port, _ in sw.poll()] == [9, 5]


@engines
def test_a_deflected_packet_is_in_the_queue_that_was_chosen(engine: str) -> None:
    links = Links(queues=EgressQueues(2))
    sw = Switch("test.p4", text=source(**PARTS), engine=engine, clock=lambda: 0, links=links)
    sw.queues.set_rate(1, 9)
    sw.queues.set_depth(0, 9)
    sw.queues.deflections[9] = (5, 1)
    assert sw.process(0, packet(1, x=9)) == []
    assert sw.queues.queue(5, 1).waiting == 1
    assert sw.poll() == [(5, packet(1, x=9, y=5, z=1))]
    sw.queues.deflections[9] = (5, 2)  # which port 5 does not have
    assert sw.process(0, packet(1, x=9)) == sw.poll() == []
    assert dict(sw.state.drops) == {"queue 0 of port 9 is full": 1}


@engines
def test_packets_of_a_batch_are_deflected_one_by_one(engine: str) -> None:
    sw = limited(engine, depth=2)
    sw.queues.deflections[9] = (5, 0)
    sent = sw.process_batch([0] * 4, [packet(1, x=9, payload=bytes([i])) for i in range(4)])
    assert sent == []
    assert [(port, data[4]) for port, data in sw.poll()] == [(9, 0), (5, 2), (5, 3)]
