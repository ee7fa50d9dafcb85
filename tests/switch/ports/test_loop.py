"""The packet loop, on sockets in pairs instead of interfaces."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import RawPcapReader

from gradplane.switch.ports.kernel_batches import BATCH, Arrivals, Bytes, Departures, Ints
from gradplane.switch.ports.offload import VNET_HEADER
from gradplane.switch.ports.packet_loop import Capture, PacketLoop, Process
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.runtime.packet_buffers import Sent, sent

PLAIN = VNET_HEADER.pack(0, 0, 0, 0, 0, 0)


class PairPort:
    """A port whose other end is `peer`, which sends what the kernel would hand to the port."""

    def __init__(self) -> None:
        self._socket, self.peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.peer.settimeout(10)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self, arrivals: Arrivals) -> None:
        arrivals.receive(self.fileno(), socket.MSG_DONTWAIT)

    def send(self, packets: Departures, first: int, end: int) -> None:
        while first < end:
            first += packets.send(self.fileno(), first, end)

    def put(self, packet: bytes) -> None:
        self.peer.send(PLAIN + packet)

    def close(self) -> None:
        self._socket.close()
        self.peer.close()


@pytest.fixture
def ports() -> Iterator[dict[int, PairPort]]:
    made = {1: PairPort(), 2: PairPort()}
    yield made
    for port in made.values():
        port.close()


def to_the_other(ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
    """Send upper case to the other port, and something to a port that does not exist."""
    out = []
    for i, (port, start, end) in enumerate(zip(ports, starts, ends, strict=True)):
        packet = data[start:end].tobytes()
        if packet == b"\xba\xad":
            raise ZeroDivisionError
        out += [(i, 3 - int(port), packet.upper()), (i, 9, b"nowhere")]
    return sent(out)


@contextmanager
def running(ports: dict[int, PairPort], process: Process = to_the_other) -> Iterator[PacketLoop]:
    loop = PacketLoop(ports, process)
    with in_thread(loop):
        yield loop


@contextmanager
def in_thread(loop: PacketLoop) -> Iterator[None]:
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield
    finally:
        loop.stop()
        thread.join(10)
        loop.close()
    assert not thread.is_alive()


def test_packets_go_through_and_the_loop_ends(ports: dict[int, PairPort]) -> None:
    with running(ports) as loop:
        ports[1].put(b"hello")
        assert ports[2].peer.recv(100) == b"HELLO"
        ports[2].put(b"back")
        assert ports[1].peer.recv(100) == b"BACK"
    assert loop.nowhere == 2


def test_packets_that_wait_at_several_ports_are_one_batch(ports: dict[int, PairPort]) -> None:
    batches = []

    def process(numbers: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        packets = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        batches.append(sorted(zip(numbers.tolist(), packets, strict=True)))
        return to_the_other(numbers, data, starts, ends)

    ports[1].put(b"one")
    ports[1].put(b"two")
    ports[2].put(b"three")
    with running(ports, process):
        assert ports[2].peer.recv(100) == b"ONE"
        assert ports[2].peer.recv(100) == b"TWO"
        assert ports[1].peer.recv(100) == b"THREE"
    assert batches == [[(1, b"one"), (1, b"two"), (2, b"three")]]


def test_more_packets_than_a_batch_keep_their_order(ports: dict[int, PairPort]) -> None:
    def spread(numbers: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        """Send to each port in turn, twice."""
        packets = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        return sent((i, port, p) for i, p in enumerate(packets) for port in (2, 1, 2))

    many = [b"%d" % i for i in range(BATCH + 40)]
    got: dict[int, list[bytes]] = {1: [], 2: []}

    def read(number: int, count: int) -> None:
        got[number] += [ports[number].peer.recv(100) for _ in range(count)]

    readers = [
        threading.Thread(target=read, args=(1, len(many))),
        threading.Thread(target=read, args=(2, 2 * len(many))),
    ]
    with running(ports, spread):
        for reader in readers:
            reader.start()
        for packet in many:
            ports[1].put(packet)
        for reader in readers:
            reader.join(10)
    assert got[1] == many
    assert got[2] == [packet for packet in many for _ in range(2)]


def test_packets_of_the_control_plane_leave_through_their_ports(ports: dict[int, PairPort]) -> None:
    with running(ports) as loop:
        loop.send([(2, b"out"), (1, b"other"), (2, b""), (2, b"more"), (7, b"no port")])
        assert [ports[2].peer.recv(100) for _ in range(2)] == [b"out", b""]
        assert ports[2].peer.recv(100) == b"more"
        assert ports[1].peer.recv(100) == b"other"
        loop.send([])
        assert loop.nowhere == 1


def test_a_packet_that_breaks_processing_does_not_stop_the_switch(
    ports: dict[int, PairPort], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), running(ports) as loop:
        ports[1].put(b"\xba\xad")
        while not loop.faults:
            pass
        ports[1].put(b"good")
        assert ports[2].peer.recv(100) == b"GOOD"
    assert loop.faults == 1
    assert caplog.messages == ["port 1: processing failed: packet baad"]


def test_captures_have_both_directions(ports: dict[int, PairPort], tmp_path: Path) -> None:
    files = {
        n: Capture(PcapWriter(tmp_path / f"{n}_in.pcap"), PcapWriter(tmp_path / f"{n}_out.pcap"))
        for n in ports
    }
    with in_thread(PacketLoop(ports, to_the_other, files)):
        ports[1].put(b"hello")
        assert ports[2].peer.recv(100) == b"HELLO"
    found = {p.name: [x for x, _ in RawPcapReader(str(p))] for p in tmp_path.iterdir()}
    assert found == {
        "1_in.pcap": [b"hello"],
        "1_out.pcap": [],
        "2_in.pcap": [],
        "2_out.pcap": [b"HELLO"],
    }
    for capture in files.values():
        capture.received.close()
        capture.sent.close()


def test_stop_before_run_ends_it_at_once(ports: dict[int, PairPort]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    loop = PacketLoop(ports, to_the_other)
    loop.stop()
    loop.run()
    loop.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_arrivals_of_every_length_are_whole(ports: dict[int, PairPort]) -> None:
    arrivals = Arrivals()
    packets = [bytes([i]) * size for i, size in enumerate((1, 60, 1514, 2049, 9000, 60_000))]
    for packet in packets:
        ports[1].put(packet)
    ports[1].receive(arrivals)
    starts, ends = arrivals.starts, arrivals.ends
    found = [arrivals.data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    assert found == packets
    assert np.all(arrivals.first_bytes() == 0)
