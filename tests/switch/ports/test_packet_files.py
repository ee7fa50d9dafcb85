"""Captures in place of interfaces: --use-files, trace --pcap, and packet tests."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gradplane._captures import ethernet_packets
from gradplane.experiment.p4_programs import trace
from gradplane.switch.daemon.options import parse_options
from gradplane.switch.daemon.packet_files import PacketFiles
from gradplane.switch.ports.pcap import PcapWriter
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.stf.test_case import run

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers { eth_t eth; }
struct meta_t { }
parser P(packet_in pkt, out headers hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.eth); transition accept; }
}
control V(inout headers hdr, inout meta_t meta) { apply { } }
control I(inout headers hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action fwd(bit<9> p) { sm.egress_spec = p; }
    table t { key = { hdr.eth.type : exact; } actions = { fwd; NoAction; } }
    apply { hdr.eth.src = sm.ingress_global_timestamp; t.apply(); }
}
control E(inout headers hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in headers hdr) { apply { pkt.emit(hdr.eth); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
START = 10**18
TIMES = (START, START + 1500, START + 250_000_000)
FRAMES = [b"\1" * 6 + bytes(6) + b"\x08\x00" + bytes([n]) * 46 for n in range(3)]


def capture(path: Path, times: tuple[int, ...] = TIMES, frames: list[bytes] = FRAMES) -> None:
    left = iter(times)
    with PcapWriter(path, lambda: next(left)) as writer:
        for frame in frames[: len(times)]:
            writer.write(frame)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "l2.p4").write_text(PROGRAM)
    (tmp_path / "l2.txt").write_text("table_add t fwd 0x0800 => 2\n")
    capture(tmp_path / "h1_in.pcap")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stamped(frame: bytes, microseconds: int) -> bytes:
    return frame[:6] + microseconds.to_bytes(6) + frame[12:]


OUT = [stamped(frame, at) for frame, at in zip(FRAMES, (0, 1, 250_000), strict=True)]


# timeout(1) and a terminal send a signal to the process and to its group: it may come twice.
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_live_switch_reads_and_writes_captures(folder: Path, signals: list[int]) -> None:
    command = [sys.executable, "-m", "gradplane", "switch", "l2.p4", "--commands", "l2.txt"]
    command += ["-i", "1@h1", "-i", "2@h2", "--use-files", "0"]
    command += ["--", "--grpc-server-addr", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdout is not None
        assert json.loads(process.stdout.readline())["ports"] == {"1": "h1", "2": "h2"}
        note = process.stderr.readline().decode()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)
        assert process.wait() == 0
    assert note.startswith("note: all 3 packets of the files are processed, and left: 3 at port 2;")
    assert note.endswith("the switch stays until Ctrl-C (--end-with-files ends it here)\n")
    packets = ethernet_packets("h2_out.pcap")
    assert [packet.data for packet in packets] == OUT
    assert [packet.time for packet in packets] == list(TIMES)
    assert Path("h1_out.pcap").stat().st_size == 24


def test_a_live_switch_may_end_with_its_captures(folder: Path) -> None:
    options = ["--use-files", "0", "--end-with-files", "--", "--grpc-server-addr", "127.0.0.1:0"]
    words = [sys.executable, "-m", "gradplane", "switch", "l2.p4", "--commands", "l2.txt"]
    command = [*words, "-i", "1@h1", "-i", "2@h2", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stderr == "note: all 3 packets of the files are processed, and left: 3 at port 2\n"
    assert [packet.data for packet in ethernet_packets("h2_out.pcap")] == OUT
    Path("h2_out.pcap").unlink()
    Path("h2_out.pcap").symlink_to("/dev/full")  # where nothing can be written
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "gradplane switch: h2_out.pcap: No space left on device\n"


def test_a_full_disk_leaves_whole_packets(folder: Path) -> None:
    class Full:
        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, data: bytes) -> int:
            return self._file.write(data[: max(0, 150 - self._file.tell())])

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    with PcapWriter(Path("out.pcap"), lambda: START) as writer:
        writer._file = Full(writer._file)
        writer.write(FRAMES[0])
        with pytest.raises(OSError, match=r"No space left on device: 'out.pcap'"):
            writer.write(FRAMES[1])
    assert [packet.data for packet in ethernet_packets("out.pcap")] == FRAMES[:1]


def test_packets_of_several_files_come_in_the_order_of_their_times(folder: Path) -> None:
    capture(folder / "h2_in.pcap", (START + 1000, START + 2000))
    with PacketFiles([(1, "h1"), (2, "h2"), (3, "h3")], 0) as files:
        assert files.clock() == START
        assert [port for port, _ in files._packets] == [1, 2, 1, 2, 1]


def test_a_port_may_be_silent(folder: Path) -> None:
    """Its capture has no packets, as p4c's test driver writes one for each port without any."""
    capture(folder / "h2_in.pcap", ())
    with PacketFiles([(1, "h1"), (2, "h2")], 0) as files:
        assert [port for port, _ in files._packets] == [1, 1, 1]
    with PacketFiles([(2, "h2")], 0) as files:
        assert files.clock() == 0 and not files._packets


def test_wrong_files_are_refused(folder: Path) -> None:
    with pytest.raises(SwitchError, match=r"there is none of h7_in.pcap, h8_in.pcap"):
        PacketFiles([(1, "h7"), (2, "h8")], 0)
    Path("h7_in.pcap").write_text("no capture")
    with pytest.raises(SwitchError, match=r"h7_in.pcap: not a capture"):
        PacketFiles([(1, "h7")], 0)
    for wrong in (["--use-files", "0"], ["--use-files", "-1", "-i", "1@h1"]):
        with pytest.raises(Exception, match="--use-files -?[01]: the seconds to wait"):
            parse_options(["l2.p4", *wrong])


def test_a_trace_of_a_capture(folder: Path) -> None:
    found = trace(Path("l2.p4"), [], [], 1, Path("h1_in.pcap"), False, None, [Path("l2.txt")])
    lines = found.splitlines()
    heads = [line for line in lines if line.startswith("packet ")]
    assert heads == [
        "packet 1, 0.000000 ms, port 1, 60 bytes",
        "packet 2, 0.001500 ms, port 1, 60 bytes",
        "packet 3, 250.000000 ms, port 1, 60 bytes",
    ]
    assert sum("table I.t" in line and "hit" in line for line in lines) == 3
    texts = trace(Path("l2.p4"), [], [], 1, Path("h1_in.pcap"), True, None, [Path("l2.txt")])
    assert [one["time_ns"] for one in json.loads(texts)] == list(TIMES)


def test_a_trace_of_some_packets_of_a_capture(folder: Path) -> None:
    """Of all the last lines say how many left, and what the program had decided when it dropped
    one: the first condition, not the second."""
    source = Path("l2.p4").read_text()
    third = "if (sm.ingress_global_timestamp > 100000) { mark_to_drop(sm); }"
    later = "if (sm.packet_length > 1) { sm.priority = 1; }"
    Path("third.p4").write_text(source.replace("t.apply(); }", f"t.apply(); {third} {later} }}"))
    chosen = (
        {"dropped": True},
        {"where": "hdr.eth.dst == 0x010101010101", "count": 1},
        {"where": "false"},
    )
    for some, shown in zip(chosen, ([3], [1], []), strict=True):
        lines = trace(
            *(Path("third.p4"), [], [], 1, Path("h1_in.pcap"), False, None, [Path("l2.txt")]),
            **some,
        ).splitlines()
        heads = [line.partition(",")[0] for line in lines if line.startswith("packet ")]
        assert heads == [f"packet {number}" for number in shown]
        assert lines[-2] == "of 3 packets 2 left"
        why = "  1: dropped: ingress: egress_spec is 511, after if (sm.ingress_global_timestamp > "
        assert lines[-1].startswith(why + "100000): true [third.p4:")


def test_a_packet_test_of_a_capture(folder: Path) -> None:
    capture(folder / "out.pcap", TIMES, [stamped(frame, at) for frame, at in zip(
        FRAMES, (1000, 1001, 251_000), strict=True
    )])  # fmt: skip
    test = "table_add t fwd 0x0800 => 2\npacket 1 @h1_in.pcap\nexpect 2 @out.pcap\n"
    (folder / "l2.stf").write_text(test)
    assert run("l2.p4").passed, run("l2.p4").message
    (folder / "l2.stf").write_text(test.replace("out.pcap", "no.pcap"))
    assert "no.pcap: No such file" in run("l2.p4").message
    shutil.copy("h1_in.pcap", "out.pcap")
    (folder / "l2.stf").write_text(test)
    assert "packet 1 on port 2" in run("l2.p4").message
