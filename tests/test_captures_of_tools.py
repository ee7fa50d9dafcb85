"""Captures between this package and other tools: the rows of docs/switch.md, "What other tools make
of captures". Seen with Scapy 2.8.0 and Wireshark's tools 4.0.17."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Padding
from scapy.utils import PcapWriter as ScapyWriter
from scapy.utils import rdpcap, wrpcap, wrpcapng

from gradplane._captures import CaptureError, ethernet_packets, read_capture
from gradplane.hosts.scapy_layers import Aggregation
from gradplane.switch.ports.pcap import PcapWriter

START = 1_700_000_000_123_456_789
LATER = (0, 1, 1_876_543_000)  # ns
EXACT, CUT, ROUNDED = LATER, (-789, -789, 1_876_542_211), (211, 211, 1_876_543_211)
HEADERS = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:fe") / IP(dst="10.0.0.254", tos=0x2D)
NORM = HEADERS / UDP(sport=20003, dport=18256, chksum=0) / Aggregation(type="norm", norm=1.5)
FRAMES = (bytes(NORM), bytes(HEADERS / UDP(dport=18256, chksum=0) / bytes(1400)), bytes(60))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a folder with a capture of ours, ours.pcap."""
    made = tmp_path_factory.mktemp("captures")
    times = iter(START + later for later in LATER)
    with PcapWriter(made / "ours.pcap", lambda: next(times)) as writer:
        for frame in FRAMES:
            writer.write(frame)
    return made


def times(path: Path) -> tuple[int, ...]:
    """Return the times of a capture's packets since START, in the file's order."""
    return tuple(packet.time - START for packet in read_capture(path))


def tool(folder: Path, *words: str) -> list[str]:
    """Run one of Wireshark's tools; return the lines that it prints."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not on PATH")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def big_endian(path: Path, packets: list[Ether]) -> None:
    with ScapyWriter(str(path), endianness=">", nano=True) as writer:
        for packet in packets:
            writer.write(packet)


BY_SCAPY: dict[str, tuple[Callable[[Path, list[Ether]], None], tuple[int, ...]]] = {
    "pcap": (lambda path, packets: wrpcap(str(path), packets), ROUNDED),
    "nanoseconds": (lambda path, packets: wrpcap(str(path), packets, nano=True), EXACT),
    "pcapng": (lambda path, packets: wrpcapng(str(path), packets), CUT),
    "big endian": (big_endian, EXACT),
}


@pytest.mark.parametrize("form", BY_SCAPY)
def test_what_scapy_reads_of_ours_and_writes(folder: Path, form: str) -> None:
    packets = list(rdpcap(str(folder / "ours.pcap")))
    assert [int(packet.time * 10**9) - START for packet in packets] == list(LATER)
    write, expected = BY_SCAPY[form]
    write(folder / "scapy.cap", packets)
    assert times(folder / "scapy.cap") == expected
    assert tuple(packet.data for packet in read_capture(folder / "scapy.cap")) == FRAMES


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tshark -r ours.pcap -F pcapng -w OUT", EXACT),
        ("editcap ours.pcap OUT", EXACT),  # to pcapng, by default
        ("editcap -F nsecpcap ours.pcap OUT", EXACT),
        ("editcap -F pcap ours.pcap OUT", CUT),
        ("editcap -t 0.5 ours.pcap OUT", tuple(time + 500_000_000 for time in EXACT)),
    ],
)
def test_what_wiresharks_tools_rewrite(folder: Path, words: str, expected: tuple[int, ...]) -> None:
    tool(folder, *words.replace("OUT", "rewritten.cap").split())
    assert times(folder / "rewritten.cap") == expected


def test_files_of_two_resolutions_are_merged(folder: Path) -> None:
    """Into a pcapng with an interface of each."""
    wrpcap(str(folder / "us.pcap"), list(rdpcap(str(folder / "ours.pcap"))))
    tool(folder, "mergecap", "-w", "merged.cap", "ours.pcap", "us.pcap")
    merged = [packet.time - START for packet in ethernet_packets(folder / "merged.cap")]
    assert merged == sorted((*EXACT, *ROUNDED))


def test_packets_that_were_cut_are_refused(folder: Path) -> None:
    tool(folder, "editcap", "-s", "64", "ours.pcap", "cut.cap")
    with pytest.raises(CaptureError, match=f"only 64 of its {len(FRAMES[0])} bytes were captured"):
        ethernet_packets(folder / "cut.cap")


def test_tshark_shows_what_we_rely_on(folder: Path) -> None:
    """IP checksums are not verified (2), a UDP checksum of 0 is none (3); DSCP and ECN of ToS 0x2d;
    a UDP port that no dissector of Wireshark's has."""
    (folder / "packed.pcap.gz").write_bytes(gzip.compress((folder / "ours.pcap").read_bytes()))
    fields = ("ip.checksum.status", "udp.checksum.status", "ip.dsfield.dscp", "ip.dsfield.ecn",
              "_ws.col.Protocol", "frame.time_epoch", "frame.len")  # fmt: skip
    words = [word for field in fields for word in ("-e", field)]
    lines = tool(folder, "tshark", "-r", "packed.pcap.gz", "-T", "fields", *words)
    wanted = ["2", "3", "11", "1", "UDP", "1700000000.123456789", str(len(FRAMES[0]))]
    assert lines[0].split("\t") == wanted


def test_bytes_behind_a_datagram_are_no_part_of_it() -> None:
    """Short frames come padded to 60 bytes from a card, and others may have a trailer."""
    for frame in (bytes(HEADERS / UDP() / b"ab").ljust(60, b"\0"), FRAMES[0] + bytes(7)):
        found = Ether(frame)
        assert found.lastlayer().__class__ is Padding
        assert len(found[UDP]) - len(found[Padding]) == found[UDP].len
