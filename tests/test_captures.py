"""Captures as input: all formats, times, damage."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from gradplane._captures import CaptureError, ethernet_packets, frame_sizes, read_capture
from gradplane.switch.ports.pcap import PcapWriter

FRAMES = (bytes(60), b"\x02" * 61, b"\x03" * 64)
TIMES = (10**18, 10**18 + 1500, 10**18 + 250_000_000)


def pcap(order: str = "<", unit: int = 1, link: int = 1, short: int = 0) -> bytes:
    magic = 0xA1B23C4D if unit == 1 else 0xA1B2C3D4
    text = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for time, frame in zip(TIMES, FRAMES, strict=True):
        second, rest = divmod(time, 10**9)
        kept = frame[: len(frame) - short]
        text += struct.pack(order + "IIII", second, rest // unit, len(kept), len(frame)) + kept
    return text


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(order: str = "<", resolution: int | None = 9, old: bool = False) -> bytes:
    text = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = b"" if resolution is None else struct.pack(order + "HHB3x", 9, 1, resolution)
    text += block(order, 1, struct.pack(order + "HHI", 1, 0, 65535) + options)
    text += block(order, 5, bytes(12))  # statistics: passed over
    for time, frame in zip(TIMES, FRAMES, strict=True):
        ticks = time if resolution else time // 1000
        form = "HH" if old else "I"
        numbers = (0, 0) if old else (0,)
        head = (*numbers, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        text += block(order, 2 if old else 6, struct.pack(order + form + "IIII", *head) + frame)
    return text


@pytest.mark.parametrize(
    "text",
    [
        pcap("<"), pcap(">"), pcapng("<"), pcapng(">"), pcapng("<", old=True),
        gzip.compress(pcap("<")),
    ],
    ids=["little", "big", "ng little", "ng big", "ng old packets", "gzip"],
)  # fmt: skip
def test_all_formats_have_the_same_packets(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x").write_bytes(text)
    packets = ethernet_packets(tmp_path / "x")
    assert [packet.data for packet in packets] == list(FRAMES)
    assert [packet.time for packet in packets] == list(TIMES)


@pytest.mark.parametrize("text", [pcap(">", unit=1000), pcapng(resolution=None)])
def test_times_in_microseconds(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x").write_bytes(text)
    times = [packet.time for packet in read_capture(tmp_path / "x")]
    assert times == [time // 1000 * 1000 for time in TIMES]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a capture: the file is empty"),
        (b"P4_16 program", "not a capture: neither pcap nor pcapng begins like this"),
        (pcap()[:-10], "packet 3: the file ends in it; what is before is whole: tcpdump -r FILE"),
        (pcapng()[:-10], "block 6: the file ends in it"),
        (pcap(link=113), "packet 1: link type 113; expected 1 (Ethernet): capture on an Ethernet"),
        (pcap(short=4), "packet 1: only 56 of its 60 bytes were captured: capture whole packets"),
        (pcap()[:24], "the capture has no packets"),
        (pcap()[:40], "packet 1: the file ends in it"),
        (pcapng()[:28] + block("<", 6, bytes(20)), "block 2: damaged"),
    ],
)
def test_a_damaged_capture_is_refused_with_its_place(
    tmp_path: Path, text: bytes, message: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(text)
    with pytest.raises(CaptureError) as error:
        ethernet_packets(path)
    assert str(error.value).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("link", "before"), [(1, 14), (101, 0), (0, 4), (113, 16), (276, 20)])
def test_sizes_of_packets_that_were_cut_or_have_no_ethernet(
    tmp_path: Path, link: int, before: int
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(link=link, short=4))
    sizes, notes = frame_sizes(path)
    assert sizes == [
        (time, len(frame) - before + 14) for time, frame in zip(TIMES, FRAMES, strict=True)
    ]
    cut, *other = notes
    assert "their whole size" in cut and len(other) == (link != 1)
    path.write_bytes(pcap(link=link))
    assert len(frame_sizes(path)[1]) == (link != 1)


def test_a_tos_that_is_not_kept_is_noted(tmp_path: Path) -> None:
    def notes(*starts: str) -> list[str]:
        path = tmp_path / "tos.pcap"
        with PcapWriter(path, lambda: 0) as writer:
            for start in starts:
                writer.write(bytes(12) + bytes.fromhex(start).ljust(50, b"\0"))
        return frame_sizes(path)[1]

    assert not notes("0800 4500", "0806 0001", "86dd 6000")
    assert notes("0800 4528", "0800 4500")[0].startswith("ToS (0x28) and contents of 1 packets are")
    assert notes("0800 4502", "86dd 6020")[0].startswith("ToS (0x02) and contents of 2 packets are")
    assert "(0x01 and others) and contents of 2 " in notes("0800 4501", "0800 4502")[0]


def test_a_link_whose_headers_are_not_known_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(link=127))
    with pytest.raises(CaptureError) as error:
        frame_sizes(path)
    assert str(error.value).startswith(f"{path}: packet 1: link type 127, whose headers are not")
    assert str(error.value).endswith(f"editcap -C BYTES -T rawip {path} NEW.pcap")


def dropping(order: str, by_packets: tuple[int, ...], by_interface: tuple[int, ...]) -> bytes:
    """Return a capture of one interface; its packets and its statistics count drops."""
    text = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    text += block(order, 1, struct.pack(order + "HHI", 1, 0, 65535))
    for count in by_packets:
        packet = struct.pack(order + "IIIII", 0, 0, 1, 61, 61) + bytes(64)
        text += block(order, 6, packet + struct.pack(order + "HHQI", 4, 8, count, 0))
    counts = zip((5, 7), by_interface, strict=False)
    options = b"".join(struct.pack(order + "HHQ", code, 8, count) for code, count in counts)
    return text + block(order, 5, bytes(12) + options)


@pytest.mark.parametrize(
    ("text", "dropped"),
    [
        (dropping("<", (0, 3, 4), ()), 7),
        (dropping(">", (0, 0), (5, 4)), 9),
        (dropping("<", (1, 2), (5, 0)), 5),  # of which the packets say three
        (dropping("<", (1,), ()) + dropping(">", (2,), ()), 3),
        (dropping("<", (0, 0), (0, 0)), 0),
    ],
    ids=["packets", "statistics", "both", "sections", "none"],
)
def test_a_capture_that_dropped_packets_is_not_taken_for_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes, dropped: int
) -> None:
    path = tmp_path / "x.pcapng"
    path.write_bytes(text)
    list(read_capture(path))
    told = f"{path}: the capture lacks {dropped} packets, which were dropped while it was made"
    assert [line.partition(";")[0] for line in caplog.messages] == [told] * (dropped > 0)


def test_a_missing_capture_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"none.pcap: No such file or directory"):
        list(read_capture(tmp_path / "none.pcap"))
