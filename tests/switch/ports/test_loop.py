"""The packet loop, on pipes instead of interfaces."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from gradplane.switch.ports.loop import Capture, PacketLoop
from gradplane.switch.ports.pcap import PcapWriter


class PipePort:
    """A port whose other end is `peer`."""

    def __init__(self) -> None:
        self._socket, self.peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.peer.settimeout(10)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> list[bytes]:
        return [self._socket.recv(2048)]

    def send(self, packet: bytes) -> None:
        self._socket.send(packet)

    def close(self) -> None:
        self._socket.close()
        self.peer.close()


@pytest.fixture
def ports() -> Iterator[dict[int, PipePort]]:
    made = {1: PipePort(), 2: PipePort()}
    yield made
    for port in made.values():
        port.close()


def to_the_other(port: int, packet: bytes) -> list[tuple[int, bytes]]:
    if packet == b"\xba\xad":
        raise ZeroDivisionError
    return [(3 - port, packet.upper()), (9, b"nowhere")]


def running(loop: PacketLoop) -> threading.Thread:
    thread = threading.Thread(target=loop.run)
    thread.start()
    return thread


def test_packets_go_through_and_the_loop_ends(ports: dict[int, PipePort]) -> None:
    loop = PacketLoop(ports, to_the_other)
    thread = running(loop)
    ports[1].peer.send(b"hello")
    assert ports[2].peer.recv(100) == b"HELLO"
    ports[2].peer.send(b"back")
    assert ports[1].peer.recv(100) == b"BACK"
    loop.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert loop.nowhere == 2
    loop.close()


def test_a_packet_that_breaks_processing_does_not_stop_the_switch(
    ports: dict[int, PipePort], caplog: pytest.LogCaptureFixture
) -> None:
    loop = PacketLoop(ports, to_the_other)
    thread = running(loop)
    with caplog.at_level(logging.ERROR):
        ports[1].peer.send(b"\xba\xad")
        ports[1].peer.send(b"good")
        assert ports[2].peer.recv(100) == b"GOOD"
    loop.stop()
    thread.join(10)
    assert loop.faults == 1
    assert caplog.messages == ["port 1: processing failed: packet baad"]
    loop.close()


def test_captures_have_both_directions(ports: dict[int, PipePort], tmp_path: Path) -> None:
    files = {
        n: Capture(PcapWriter(tmp_path / f"{n}_in.pcap"), PcapWriter(tmp_path / f"{n}_out.pcap"))
        for n in ports
    }
    loop = PacketLoop(ports, to_the_other, files)
    thread = running(loop)
    ports[1].peer.send(b"hello")
    assert ports[2].peer.recv(100) == b"HELLO"
    loop.stop()
    thread.join(10)
    loop.close()
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


def test_stop_before_run_ends_it_at_once(ports: dict[int, PipePort]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    loop = PacketLoop(ports, to_the_other)
    loop.stop()
    loop.run()
    loop.close()
    assert len(os.listdir("/proc/self/fd")) == before
