"""The packet loop, on sockets in pairs instead of interfaces."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import RawPcapReader

from gradplane.switch.ports.kernel_batches import BATCH, Arrivals, Bytes, Departures, Ints
from gradplane.switch.ports.offload import VNET_HEADER
from gradplane.switch.ports.packet_loop import Capture, PacketLoop, Process
from gradplane.switch.ports.packet_loops import PacketLoops
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
    loop = PacketLoop(ports, process, reads=ports)
    with in_thread(loop):
        yield loop


@contextmanager
def in_thread(loop: PacketLoop | PacketLoops) -> Iterator[None]:
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
    with in_thread(PacketLoop(ports, to_the_other, files, reads=ports)):
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
    loop = PacketLoop(ports, to_the_other, reads=ports)
    loop.stop()
    loop.run()
    loop.close()
    assert len(os.listdir("/proc/self/fd")) == before


@contextmanager
def on_two_cores(ports: dict[int, PairPort], process: Process) -> Iterator[PacketLoops]:
    loops = PacketLoops([PacketLoop(ports, process, reads=[number]) for number in sorted(ports)])
    with in_thread(loops):
        yield loops


def test_on_two_cores_the_packets_of_a_port_stay_in_order(ports: dict[int, PairPort]) -> None:
    many, threads = 3 * BATCH, set()

    def process(numbers: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        threads.add((int(numbers[0]), threading.get_ident()))
        assert len(set(numbers.tolist())) == 1
        packets = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        pairs = zip(numbers.tolist(), packets, strict=True)
        return sent((i, 3 - port, packet) for i, (port, packet) in enumerate(pairs))

    got: dict[int, list[bytes]] = {}
    readers = [
        threading.Thread(
            target=lambda n=number: got.update({n: [ports[n].peer.recv(100) for _ in range(many)]})
        )
        for number in ports
    ]
    with on_two_cores(ports, process):
        for reader in readers:
            reader.start()
        for i in range(many):
            ports[1].put(b"a%d" % i)
            ports[2].put(b"b%d" % i)
        for reader in readers:
            reader.join(10)
    assert got == {1: [b"b%d" % i for i in range(many)], 2: [b"a%d" % i for i in range(many)]}
    assert len(threads) == len({thread for _, thread in threads}) == 2


def test_ports_come_and_go_while_two_cores_run(ports: dict[int, PairPort]) -> None:
    def back(numbers: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        packets = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
        return sent((i, int(numbers[i]), packet) for i, packet in enumerate(packets))

    third, called = PairPort(), threading.Event()
    with on_two_cores(ports, back) as loops:
        loops.add(3, third, None, called.set)
        assert called.wait(10)
        third.put(b"third")
        assert third.peer.recv(100) == b"third"
        called.clear()
        loops.remove(3, called.set)
        assert called.wait(10)
        third.put(b"gone")
        for number in (1, 2):
            ports[number].put(b"still")
            assert ports[number].peer.recv(100) == b"still"
    third.close()


def test_what_ends_one_loop_ends_all(ports: dict[int, PairPort]) -> None:
    class Broken(PairPort):
        def receive(self, arrivals: Arrivals) -> None:
            raise OSError("broken")

    ports[2].close()
    ports[2] = Broken()
    loops = PacketLoops([PacketLoop(ports, to_the_other, reads=[n]) for n in (1, 2)])
    ports[2].put(b"x")
    with pytest.raises(OSError, match="broken"):
        loops.run()
    loops.close()


def test_a_loop_beside_wakes_the_first_for_packets_in_queues(ports: dict[int, PairPort]) -> None:
    class Queue:
        at: int | None = None

        def next_departure(self) -> int | None:
            return self.at

        def poll(self) -> Sent:
            self.at = None
            return sent([(0, 1, b"later")])

    queue = Queue()

    def hold(numbers: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent:
        queue.at = time.monotonic_ns()
        return sent(())

    loops = [PacketLoop(ports, hold, queued=queue, reads=[number]) for number in (1, 2)]
    with in_thread(PacketLoops(loops)):
        ports[2].put(b"x")  # which the second loop reads
        assert ports[1].peer.recv(100) == b"later"


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
