"""pcap files: read back with scapy while they are still written."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from gradplane.switch.ports.pcap import PcapWriter


def read(path: Path) -> list[tuple[int, bytes]]:
    with RawPcapReader(str(path)) as reader:
        assert reader.nano
        return [(info.sec * 10**9 + info.usec, packet) for packet, info in reader]


def test_packets_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    times = iter([1_700_000_000_123_456_789, 1_700_000_001_000_000_001])
    with PcapWriter(tmp_path / "a.pcap", lambda: next(times)) as writer:
        assert read(tmp_path / "a.pcap") == []
        writer.write(b"first")
        assert read(tmp_path / "a.pcap") == [(1_700_000_000_123_456_789, b"first")]
        writer.write(b"")
        assert read(tmp_path / "a.pcap")[1] == (1_700_000_001_000_000_001, b"")


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_any_packets_come_back(tmp_path_factory: object, packets: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("pcap") / "a.pcap"  # type: ignore[attr-defined]
    with PcapWriter(path, lambda: 0) as writer:
        for packet in packets:
            writer.write(packet)
    assert [packet for _, packet in read(path)] == packets
