"""The Wireshark dissectors: the layout against wire.py and, with tshark, their output."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

import gradplane.hosts
from gradplane.hosts.scapy_layers import Aggregation, Compressed
from gradplane.hosts.wire import aggregation
from gradplane.hosts.wire.aggregation import Header, Type

LUA = Path(gradplane.hosts.__path__[0]) / "dissector" / "gradplane.lua"
COMPRESSED_LUA = LUA.with_name("tos_compress.lua")
NOBODY = 65534

# Names as in the Lua file, and a header in which only that field is set.
EMPTY = Header(Type.NORM, 0, 0, 0, 0, 0, epoch=0, code_bits=0)
FIELDS = {
    "job": replace(EMPTY, job=0xFF),
    "worker": replace(EMPTY, worker=0xFF),
    "slot": replace(EMPTY, slot=0xFFFF),
    "pass": replace(EMPTY, passed=0xFF),
    "sum_bits": replace(EMPTY, sum_bits=0xFF),
    "round": replace(EMPTY, round=2**32 - 1),
    "bitmap": replace(EMPTY, bitmap=2**64 - 1),
    "norm": replace(EMPTY, norm=2**32 - 1),
    "flags": replace(EMPTY, flags=0xFF),
    "count": replace(EMPTY, count=0xFFFF),
    "epoch": replace(EMPTY, epoch=0xFF),
    "code_bits": replace(EMPTY, code_bits=0xFF),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_lie_where_the_wire_has_them(name):
    (place,) = re.findall(rf"add\(f\.{name}, buffer\((\d+), (\d+)\)\)", LUA.read_text())
    start, size = map(int, place)
    packed = FIELDS[name].pack()
    changed = [k for k in range(1, aggregation.CHECKSUM_AT) if packed[k]]
    assert changed == list(range(start, start + size))


def test_constants_are_those_of_the_wire():
    text = LUA.read_text()
    assert f"= {aggregation.UDP_PORT}, {aggregation.HEADER_SIZE}, {aggregation.VERSION}\n" in text
    names = ", ".join(kind.name for kind in Type)
    assert f"local {names} = {', '.join(str(int(kind)) for kind in Type)}\n" in text


def frames():
    make = Ether(src="00:00:00:00:00:01", dst="00:00:00:00:00:fe") / IP(dst="10.0.0.254")
    up, down = UDP(sport=20003, dport=18256), UDP(sport=18256, dport=20003)
    sums = [1, 65535, *[0] * 510]
    return [
        make / up / Aggregation(type="norm", job=3, worker=2, slot=7, norm=1.5),
        make / up / Aggregation(type="indices", slot=7, round=9, values=[*range(16)] * 64),
        make / down / Aggregation(type="sums", sum_bits=16, count=4, bitmap=15, values=sums),
        make / down / Aggregation(type="sums", values=[1] * 100),
        make / up / Aggregation(type="norm", slot=5, checksum=1),
        make / down / Aggregation(version=1, type="sums", worker=4, slot=6, values=[1] * 1024),
    ]


def compressed_frames():
    values = [0.5, -0.01, 0.0001, -3.0, 0.002, 0.25, 0, 7, 0.03, -0.001]
    whole, with_header = Compressed.of(values), Compressed.of(values, 8, bytes(range(16)), flags=1)
    marked = Ether() / IP(dst="10.0.0.2", tos=0x2D) / UDP(sport=7000, dport=7001)
    unmarked = Ether() / IP(dst="10.0.0.2", tos=0x28) / UDP(sport=7000, dport=7001)
    return [
        marked / whole,
        marked / with_header,
        marked / bytes(whole)[:-1],
        marked / b"\0\1",
        unmarked / whole,
    ]


def tshark(folder, *options, lua=LUA, packets=None):
    """Return the lines that tshark prints about packets, or frames(). It runs no Lua scripts for
    root."""
    folder.chmod(0o755)
    shutil.copy(lua, folder / "gradplane.lua")
    wrpcap(str(folder / "frames.pcap"), packets or frames())
    for path in folder.iterdir():
        path.chmod(0o644)
    command = ["tshark", "-X", "lua_script:gradplane.lua", "-r", "frames.pcap", *options]
    root = os.geteuid() == 0
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
    environment = os.environ | {"HOME": "/nonexistent"}
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, **who
    )
    assert "Lua: Error" not in run.stderr, run.stderr
    return run.stdout.splitlines()


if shutil.which("tshark"):

    def test_tshark_shows_and_filters():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            info = tshark(folder, "-T", "fields", "-e", "_ws.col.Info")
            assert info == [
                "norm, job 3, worker 2, slot 7, round 1",
                "indices, job 0, worker 0, slot 7, round 9",
                "sums, job 0, worker 0, slot 0, round 1",
                "sums, job 0, worker 0, slot 0, round 1",
                "norm, job 0, worker 0, slot 5, round 1",
                "sums, job 0, worker 4, slot 6, round 1",
            ]
            columns = ("-T", "fields", "-e", "frame.number")
            assert tshark(folder, *columns, "-Y", "gradplane.slot == 7") == ["1", "2"]
            assert tshark(folder, *columns, "-Y", "gradplane.norm == 1.5") == ["1"]
            assert tshark(folder, *columns, "-Y", "gradplane.sum.max == 65535") == ["3"]
            assert tshark(folder, *columns, "-Y", "gradplane.sum.total == 65536") == ["3"]
            assert tshark(folder, *columns, "-Y", "gradplane.short") == ["4"]
            assert tshark(folder, *columns, "-Y", "gradplane.damaged") == ["5"]
            assert tshark(folder, *columns, "-Y", "gradplane.first") == ["6"]
            assert tshark(folder, *columns, "-Y", "gradplane.sum.total == 1024") == ["6"]
            text = "\n".join(tshark(folder, "-V", "-Y", "frame.number == 2"))
            assert "   0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n" in text
            assert "(1024 values)" in text

    def test_a_packet_that_the_capture_cut_is_not_malformed():
        """wrpcap writes the length that a packet had; tshark knows it as the reported length."""

        def noted(packets, size, lua, kind):
            cut = [Ether(bytes(packet)[:size]) for packet in packets]
            for short, packet in zip(cut, packets, strict=True):
                short.wirelen = len(packet)
            columns = ("-T", "fields", "-e", "frame.number", "-Y", kind)
            with tempfile.TemporaryDirectory() as name:
                return tshark(Path(name), *columns, lua=lua, packets=cut)

        for size in (60, 96):  # within the header, and within the body
            whole = frames()[1:3]
            assert noted(whole, size, LUA, "gradplane.cut") == ["1", "2"]
            assert noted(whole, size, LUA, "gradplane.short") == []
        for size in (44, 50):
            whole = compressed_frames()[:2]
            assert noted(whole, size, COMPRESSED_LUA, "tosfloat.cut") == ["1", "2"]
            assert noted(whole, size, COMPRESSED_LUA, "tosfloat.malformed") == []

    def test_tshark_shows_compressed_values():
        def shown(*options):
            packets = compressed_frames()
            with tempfile.TemporaryDirectory() as name:
                return tshark(Path(name), *options, lua=COMPRESSED_LUA, packets=packets)

        info = shown("-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info")
        assert info[:3] == [
            "tosfloat\t10 values in 24 bytes, bound 2^-10",
            "tosfloat\t10 values in 38 bytes, bound 2^-8",
            "tosfloat\t10 values in 23 bytes, bound 2^-10",
        ]
        assert [line.split("\t")[0] for line in info[3:]] == ["tosfloat", "UDP"]
        number = ("-T", "fields", "-e", "frame.number")
        assert shown(*number, "-Y", "tosfloat.malformed") == ["3", "4"]
        assert shown(*number, "-Y", "tosfloat.flags.message == 1") == ["2"]
        tags = [option for tag in range(4) for option in ("-e", f"tosfloat.tag{tag}")]
        assert shown("-T", "fields", *tags, "-Y", "frame.number == 1") == ["2\t4\t2\t2"]
        text = "\n".join(shown("-V", "-Y", "frame.number == 1"))
        values = "0.5 -0.00976562 0 -3 0.00195312 0.25 0 7\n    0.0297852 -0.000976562\n"
        assert f"    {values}" in text
