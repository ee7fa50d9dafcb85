"""Messages that no controller reads in time are counted, by kind, and named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from finsy.proto import p4d, p4r
from hand_made_device import service

from gradplane.switch import Switch
from gradplane.switch.commands import CommandTarget, NoPorts, PortStatus, run_words
from gradplane.switch.p4runtime.digest_lists import DigestLists
from gradplane.switch.p4runtime.limits import Limits
from gradplane.switch.p4runtime.response_streams import Losses, ResponseStream
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.runtime.control_messages import Fault, PacketIn


def test_a_slow_client(caplog: pytest.LogCaptureFixture) -> None:
    losses = Losses()
    stream = ResponseStream(losses, 2)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            stream.send(p4r.StreamMessageResponse(packet=p4r.PacketIn()))
        stream.send(p4r.StreamMessageResponse(digest=p4r.DigestList()))
    assert losses.counts == {"packet-ins": 3, "digests": 1}
    text = "lost since no controller read them in time: {} (--limit waiting=N)"
    assert caplog.messages == [text.format("1 packet-ins")]  # one line a second
    losses._due = 0
    losses.log_new()
    losses.log_new()
    assert caplog.messages[1:] == [text.format("1 digests, 2 packet-ins")]


def test_the_switchs_own_queue() -> None:
    device = service().device
    server = P4RuntimeServer(device, "127.0.0.1:0", limits=Limits(waiting=1))
    for message in (PacketIn(b""), PacketIn(b""), Fault("")):
        server._put_aside(message)
    assert device.losses.counts == {"packet-ins": 1, "faults": 1}


def test_the_command() -> None:
    router = Path(__file__).parent / "programs" / "router.p4"

    class Ports(NoPorts):
        def status(self) -> list[PortStatus]:
            return [PortStatus(1, "s1", True), PortStatus(2, "s2", True, missed=3)]

    target = CommandTarget(Switch(router), Ports(), {"packet-ins": 7, "digests": 12})
    assert run_words(target, ["show_losses"]).splitlines() == [
        "        messages                lost",
        "digests                           12",
        "packet-ins                         7",
        "packets, port 2                    3",
    ]


def test_digests_that_wait_for_acknowledgement_cost_nothing() -> None:
    """A list is forgotten by its acknowledgement or its time-out; others stay."""
    config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=100)
    lists = DigestLists(lambda number: config)

    def offer(value: int, now: int) -> int:
        data = p4d.P4Data(bitstring=value.to_bytes(2, "big")).SerializeToString()
        return len(lists.offer(1, data, now))

    assert [offer(i, i) for i in range(5)] == [1] * 5
    assert [offer(i, 10) for i in range(5)] == [0] * 5
    lists.acknowledge(1, 3)  # of the message 2
    assert [offer(i, 20) for i in range(5)] == [0, 0, 1, 0, 0]
    assert [offer(i, 102) for i in range(5)] == [1, 1, 0, 0, 0]  # 0 to 2 had time until 100 to 102
