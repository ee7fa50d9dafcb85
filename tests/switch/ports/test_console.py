"""--log-console, --log-file: what happens to each packet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions, parse_options
from gradplane.switch.runtime.packet_buffers import outputs, pack
from gradplane.switch.switch import Switch

ROUTER = Path(__file__).parent.parent / "p4runtime" / "programs" / "router.p4"
PACKET = bytes.fromhex("0200000000990200000000010800450000140000000040000000 0a0000010a000105")


def plain(text: str) -> list[str]:
    """The lines of a trace without their places in the architecture's path."""
    return [re.sub(r" +\[v1model/path\.p4:\d+:\d+\]$", "", line) for line in text.splitlines()]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_each_packet_of_a_batch_is_traced(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    device = make_device(SwitchOptions(program=ROUTER, log_console=True, engine=engine))
    ports, data, offsets = pack([1, 2], [bytes(14), bytes(20)])
    assert outputs(*device.process_spans(ports, data, offsets[:-1], offsets[1:])) == []
    lines = [line for line in plain(capsys.readouterr().err) if line and line[0] != " "]
    blocks = ["== parser", "== ingress"]
    assert lines == ["port 1, 14 bytes", *blocks, "port 2, 20 bytes", *blocks]


def test_to_a_file_with_the_packets_first_bytes(tmp_path: Path) -> None:
    with (tmp_path / "s1.txt").open("w") as file:
        device = make_device(SwitchOptions(program=ROUTER, dump_bytes=4), log_file=file)
        device.process(3, bytes.fromhex("0102030405060708090a0b0c0d0e"))
    lines = plain((tmp_path / "s1.txt").read_text())
    assert lines[:3] == ["port 3, 14 bytes", "01020304", "== parser"]


def test_as_bmv2_logs_it(capsys: pytest.CaptureFixture[str]) -> None:
    options = SwitchOptions(program=ROUTER, log_console=True, log_format="bmv2")
    device = make_device(options)
    assert device.pipeline is not None and isinstance(device.pipeline.switch, Switch)
    route = {"match": {"hdr.ipv4.dst": ("10.0.1.0", 24)}, "params": {"dstAddr": 1, "port": 2}}
    device.pipeline.switch.table("ipv4_lpm").add(action="ipv4_forward", **route)
    device.process(1, bytes(12))
    capsys.readouterr()
    device.process(1, PACKET)
    log = capsys.readouterr().err
    head = re.compile(
        r"^\[[\d:.]{12}\] \[bmv2\] \[([TDI])\] \[thread \d+\] \[1\.0\] \[cxt 0\] ", re.M
    )
    assert (
        head.sub(r"\1 ", log)
        == f"""\
D Processing packet received on port 1
D Parser 'parser': start
D Parser 'parser' entering state 'start'
D Parser 'parser' entering state 'parse_ethernet'
D Extracting header 'ethernet'
D Parser 'parser' entering state 'parse_ipv4'
D Extracting header 'ipv4'
D Parser 'parser': end
D Pipeline 'ingress': start
T {ROUTER}(114) Primitive MyIngress.seen.count(1)
T {ROUTER}(115) Condition "hdr.packet_out.isValid()" is false
T {ROUTER}(118) Condition "hdr.ipv4.isValid()" is true
T {ROUTER}(119) Primitive MyIngress.last.write(0, 0xa000105)
T Applying table 'MyIngress.ipv4_lpm'
D Looking up key:
* hdr.ipv4.dst        : 0a000105

D Table 'MyIngress.ipv4_lpm': hit with handle 0
D Action entry is MyIngress.ipv4_forward - 1,2,
T Action MyIngress.ipv4_forward
T {ROUTER}(87) Primitive hdr.ethernet.src = 0x20000000099
T {ROUTER}(88) Primitive hdr.ethernet.dst = 1
T {ROUTER}(89) Primitive hdr.ipv4.ttl = 0x3f
T {ROUTER}(90) Primitive standard_metadata.egress_spec = 2
D Pipeline 'ingress': end
D Egress port is 2
D Pipeline 'egress': start
T {ROUTER}(131) Condition "standard_metadata.egress_port == 510" is false
D Pipeline 'egress': end
D Transmitting packet of size 34 out of port 2
"""
    )


def test_level_debug_leaves_out_what_bmv2_traces(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--log-console --log-format bmv2 -L debug"
    device = make_device(parse_options([str(ROUTER), *line.split()]))
    device.process(1, PACKET)
    log = capsys.readouterr().err
    assert "[D]" in log and "[T]" not in log
    assert "Dropping packet at the end of ingress (egress_spec is 511)\n" in log


def test_parser_errors_have_bmv2s_level(capsys: pytest.CaptureFixture[str]) -> None:
    device = make_device(parse_options([str(ROUTER), "--log-console", "--log-format", "bmv2"]))
    device.process(1, PACKET[:20])
    (line,) = [text for text in capsys.readouterr().err.splitlines() if "PacketTooShort" in text]
    assert re.fullmatch(r".* \[bmv2\] \[E\] .* Exception while parsing: PacketTooShort", line)
