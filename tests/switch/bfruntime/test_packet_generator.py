"""The packet generator: when its packets come, what they are, and its tables."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
import pytest
from bfrt_client import Client
from bfrt_served import Served

from gradplane.switch.bfruntime.packet_generator import (
    DEPARSER,
    ONE_SHOT,
    PERIODIC,
    PORT_DOWN,
    RETURNED,
    PacketGenerator,
)
from gradplane.switch.bfruntime.server import BfRuntimeServer
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions

VALUES = {"app_enable": True, "pkt_len": 3, "pkt_buffer_offset": 16, "pipe_local_source_port": 68,
          "batch_count_cfg": 1, "packets_per_batch_cfg": 1, "ibg": 50, "ipg": 10}  # fmt: skip


def generator(wide: bool = False) -> PacketGenerator:
    made = PacketGenerator(7, wide)
    made.ports[128 + 68] = {"pktgen_enable": True}
    made.buffer(1)[16:19] = b"abc"
    return made


def test_batches_of_a_timer() -> None:
    made = generator()
    made.configure(1, 5, ONE_SHOT, {**VALUES, "timer_nanosec": 100}, now=1000)
    times, packets = [], []
    while (due := made.next_due()) is not None:
        times.append(due)
        packets += made.packets(due)
    assert times == [1100, 1110, 1160, 1170]
    head = bytes([1 << 3 | 5, 0])
    assert packets == [
        (196, head + bytes([0, batch, 0, packet]) + b"abc") for batch in (0, 1) for packet in (0, 1)
    ]
    counts = made.applications[1, 5].values
    assert [counts[f"{n}_counter"] for n in ("trigger", "batch", "pkt")] == [1, 2, 4]


def test_a_periodic_timer_goes_on_until_it_is_disabled() -> None:
    made = generator(wide=True)
    values = {**VALUES, "batch_count_cfg": 0, "packets_per_batch_cfg": 0, "timer_nanosec": 100}
    made.configure(1, 15, PERIODIC, values, now=0)
    assert len(list(made.packets(450))) == 4
    assert made.next_due() == 500
    assert list(made.packets(500))[0][1][0] == 1 << 4 | 15
    made.configure(1, 15, PERIODIC, {**values, "app_enable": False}, now=500)
    assert made.next_due() is None


def test_a_link_that_goes_down() -> None:
    made = generator()
    made.configure(1, 2, PORT_DOWN, {**VALUES, "batch_count_cfg": 0}, now=0)
    made.link_down(9, 10)  # of another pipe
    assert made.next_due() is None
    made.link_down(128 + 9, 20)
    packets = [packet for _, packet in made.packets(1000)]
    assert [p[2:6] for p in packets] == [bytes([0, 137, 0, 0]), bytes([0, 137, 0, 1])]


def test_a_pipe_without_an_enabled_port_is_silent() -> None:
    made = generator()
    made.ports.clear()
    made.configure(1, 5, ONE_SHOT, {**VALUES, "timer_nanosec": 1}, now=0)
    assert list(made.packets(10**6)) == []


def test_clients_start_applications(interpreted: Served) -> None:
    device, client = interpreted
    sent: list[tuple[int, bytes]] = []
    device.transmit = sent.extend
    client.set_default("macs", "Ingress.send", port=9)
    client.add("tf1.pktgen.port_cfg", {"dev_port": 68}, pktgen_enable=True)
    place = {"pkt_buffer_offset": 0, "pkt_buffer_size": 10}
    entry = client.entry("tf1.pktgen.pkt_buffer", place)
    entry.data.fields.add(field_id=1, stream=bytes(range(10)))
    client.write(("INSERT", entry))
    (shown,) = client.read("tf1.pktgen.pkt_buffer", place)
    assert shown["buffer"] == list(range(10))
    client.add("tf1.pktgen.app_cfg", {"app_id": 1}, "trigger_timer_one_shot", timer_nanosec=1000,
               pkt_len=10, pipe_local_source_port=68, packets_per_batch_cfg=2,
               app_enable=True)  # fmt: skip
    for _ in range(1500):
        if len(sent) == 3:
            break
        time.sleep(0.02)
    expected = bytes([1, 0, 0, 0, 0])
    assert sent == [(9, expected + bytes([i]) + bytes(range(10))) for i in range(3)]
    (application,) = client.read("tf1.pktgen.app_cfg", {"app_id": 1})
    assert application["pkt_counter"] == 3


def test_a_packet_that_comes_back_with_a_pattern() -> None:
    made = generator()
    values = {**VALUES, "batch_count_cfg": 0, "packets_per_batch_cfg": 1,
              "pattern_value": 0x12003456, "pattern_mask": 0xFF00FFFF}  # fmt: skip
    made.configure(1, 3, RETURNED, values, now=0)
    made.returned(196, bytes.fromhex("12993456"), 10)
    assert made.next_due() is None  # no pattern is looked for at this port
    made.ports[196]["pattern_matching_enable"] = True
    made.returned(196, bytes.fromhex("1299345600"), 20)
    head = bytes([1 << 3 | 3, 0x99, 0x34, 0x56, 0])
    assert [p for _, p in made.packets(100)] == [head + bytes([i]) + b"abc" for i in (0, 1)]
    made.returned(196, bytes.fromhex("13993456"), 200)
    assert made.next_due() is None


def test_a_deparser_asks_for_packets() -> None:
    made = generator(wide=True)
    values = {**VALUES, "batch_count_cfg": 0, "packets_per_batch_cfg": 0,
              "pattern_value": 0x77 << 120, "pattern_mask": 0xFF << 120}  # fmt: skip
    made.configure(1, 9, DEPARSER, values, now=0)
    prefix = bytes([0x77, *range(15)])
    made.requested(bytes(16), 0, 0, 5)
    assert made.next_due() is None
    for place, size, data in ((17, 2, b"bc"), (0, 0, b"abc")):
        made.requested(prefix, place, size, 10)
        assert [p for _, p in made.packets(10)] == [
            bytes([1 << 4 | 9, 0, 0, 0, 0, 0]) + prefix + data
        ]


RECIRCULATING = """
#include <core.p4>
#include <{include}>
header word_t {{ bit<8> kind; bit<24> value; }}
struct headers_t {{ word_t word; }}
struct metadata_t {{ }}
parser IngressParser(packet_in pkt, out headers_t h, out metadata_t m,
                     out ingress_intrinsic_metadata_t ig) {{
    state start {{
        pkt.extract(ig); pkt.advance(PORT_METADATA_SIZE); pkt.extract(h.word); transition accept;
    }}
}}
control Ingress(inout headers_t h, inout metadata_t m, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t prsr,
                inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                inout ingress_intrinsic_metadata_for_tm_t tm) {{
    apply {{ {apply} }}
}}
control IngressDeparser(packet_out pkt, inout headers_t h, in metadata_t m,
                        in ingress_intrinsic_metadata_for_deparser_t dprsr) {{
    {deparser} pkt.emit(h); }}
}}
parser EgressParser(packet_in pkt, out headers_t h, out metadata_t m,
                    out egress_intrinsic_metadata_t eg) {{
    state start {{ pkt.extract(eg); transition accept; }}
}}
control Egress(inout headers_t h, inout metadata_t m, in egress_intrinsic_metadata_t eg) {{
    apply {{ }}
}}
control EgressDeparser(packet_out pkt, inout headers_t h, in metadata_t m) {{ apply {{ }} }}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(),
         EgressDeparser()) pipe;
Switch(pipe) main;
"""
BACK = {
    "include": "tna.p4",
    "apply": "tm.ucast_egress_port = h.word.kind == 0xAA && ig.ingress_port == 1 ? 9w68 : 9w2;",
    "deparser": "apply {",
}
ASK = {
    "include": "t2na.p4",
    "apply": """tm.ucast_egress_port = 2;
        if (ig.ingress_port == 1) { dprsr.pktgen = 1; dprsr.pktgen_length = 2; }""",
    "deparser": "Pktgen() generator; apply { generator.emit(h.word);",
}


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("parts, action, middle, prefix, size", [
    (BACK, "trigger_recirc_pattern", b"\x01\x02\x03", b"", 4),
    (ASK, "trigger_dprsr", b"\0\0\0", b"\xaa\x01\x02\x03" + bytes(12), 16),
])  # fmt: skip
def test_packets_of_the_switch_trigger_applications(
    engine: str, parts: dict[str, str], action: str, middle: bytes, prefix: bytes, size: int,
    tmp_path: Path,
) -> None:  # fmt: skip
    program = tmp_path / "returning.p4"
    program.write_text(RECIRCULATING.format(**parts))
    device = make_device(SwitchOptions(program=program, engine=engine))
    sent: list[tuple[int, bytes]] = []
    device.transmit = sent.extend
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        family = "tf2" if "t2na" in parts["include"] else "tf1"
        client.add(f"{family}.pktgen.port_cfg", {"dev_port": 68}, pktgen_enable=True,
                   pattern_matching_enable=True)  # fmt: skip
        shift = 8 * (size - 1)
        client.add(f"{family}.pktgen.app_cfg", {"app_id": 1}, action, app_enable=True, pkt_len=2,
                   pipe_local_source_port=68, pattern_value=0xAA << shift,
                   pattern_mask=0xFF << shift)  # fmt: skip
        packet = bytes.fromhex("aa010203")
        assert device.process(1, packet) == [(2, packet)]
        for _ in range(1500):
            if sent:
                break
            time.sleep(0.02)
    assert sent == [(2, b"\x01" + middle + b"\0\0" + prefix + b"\0\0")]


def port_down(now: int = 0, **values: int) -> dict[str, int | bool]:
    return {**VALUES, "batch_count_cfg": 0, "packets_per_batch_cfg": 0, **values}


def ports_of(made: PacketGenerator, now: int = 10**9) -> list[int]:
    """Return the ports in the headers of generated packets."""
    return [int.from_bytes(packet[1:4], "big") for _, packet in made.packets(now)]


def test_links_that_go_down_together_each_make_packets() -> None:
    made = PacketGenerator(7, wide=True, ports={0: {"pktgen_enable": True}})
    made.configure(0, 2, PORT_DOWN, port_down(), now=0)
    for port in (3, 9, 137):  # the last one is another pipe's
        made.link_down(port, now=5)
    assert ports_of(made) == [3, 9]


def test_a_mask_leaves_ports_out() -> None:
    made = PacketGenerator(7, wide=True, ports={0: {"pktgen_enable": True}})
    made.masks[0, 1] = 1 << 64 + 3 | 1 << 56 + 1  # ports 3 and 9: the first byte has ports 0 to 7
    made.configure(0, 2, PORT_DOWN, port_down(port_mask_sel=1), now=0)
    for port in (3, 4, 9, 10):
        made.link_down(port, now=5)
    assert ports_of(made) == [3, 9]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("REPLAY_NONE", []), ("REPLAY_ALL", [3, 9]), ("REPLAY_MISSED", [9])],
)
def test_links_that_are_down_already(mode: str, expected: list[int]) -> None:
    down = {3}
    made = PacketGenerator(7, True, lambda: frozenset(down), ports={0: {"pktgen_enable": True}})
    made.configure(0, 2, PORT_DOWN, port_down(), now=0)
    made.link_down(3, now=5)
    assert ports_of(made) == [3]
    made.replays[0] = mode
    made.configure(0, 2, PORT_DOWN, port_down(app_enable=False), now=6)
    down.add(9)
    made.link_down(9, now=7)
    made.configure(0, 2, PORT_DOWN, port_down(), now=8)
    assert ports_of(made) == expected


def test_masks_and_replays_of_each_pipe(tmp_path: Path) -> None:
    program = tmp_path / "asking.p4"
    program.write_text(RECIRCULATING.format(**ASK))
    device = make_device(SwitchOptions(program=program, engine="interpreter"))
    with BfRuntimeServer(device, "127.0.0.1:0") as server, Client(server.address) as client:
        entry = client.entry("pktgen.port_mask", {"port_mask_sel": 1}, mask=5)
        client.write(("MODIFY", entry), target={"pipe_id": 1})
        found = [client.read("pktgen.port_mask", pipe=p) for p in (0, 1)]
        everything = (1 << 72) - 1
        assert [[row["mask"] for row in rows] for rows in found] == [
            [everything, everything], [everything, 5],
        ]  # fmt: skip
        client.write(("DELETE", client.entry("pktgen.port_mask", None)))
        assert client.read("pktgen.port_mask", {"port_mask_sel": 1}, pipe=1)[0]["mask"] > 5
        client.set_default("pktgen.port_down_replay", replay_mode="REPLAY_ALL")
        assert client.default("pktgen.port_down_replay") == {"replay_mode": "REPLAY_ALL"}
        for wrong in (
            client.entry("pktgen.port_mask", {"port_mask_sel": 2}, mask=5),
            client.entry("pktgen.app_cfg", {"app_id": 1}, PORT_DOWN, port_mask_sel=2),
        ):
            with pytest.raises(grpc.RpcError, match="port_mask_sel.* is not within 0 to 1"):
                client.write(("MODIFY", wrong))
